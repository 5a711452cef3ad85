package io.seawall.delta;

import io.delta.storage.HadoopFileSystemLogStore;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.FileAlreadyExistsException;
import java.util.Arrays;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.s3a.RemoteFileChangedException;
import software.amazon.awssdk.awscore.exception.AwsServiceException;

/**
 * Delta's log on S3, a commit's file created by the store itself or not at all: PUT with If-None-Match: *.
 *
 * A refusal is looked into: where the file holds what was to be written, an answer was lost on the way and the
 * request sent again; a commit names itself by a random id, so that no two have the same bytes. Anything else
 * is another's commit, which Delta is told as it expects to be. An outcome that nobody knows is an error.
 *
 * Compiled by Janino: no lambdas, no inferred type arguments.
 */
public class ConditionalLogStore extends HadoopFileSystemLogStore {
    private static final String ONLY_IF_ABSENT = "fs.option.create.conditional.overwrite";
    private static final int BUSY_MAX = 5;
    private static final long BUSY_PAUSE_MS = 200;
    private static final int CONFLICT = 409; // of two requests that S3 has in hand at once: ask again
    private static final int PRECONDITION_FAILED = 412;

    public ConditionalLogStore(Configuration hadoopConf) {
        super(hadoopConf);
    }

    public void write(Path path, Iterator actions, Boolean overwrite, Configuration hadoopConf)
            throws IOException {
        FileSystem fs = path.getFileSystem(hadoopConf);
        byte[] content = bytesOf(actions); // all of it first: closing the stream is what publishes it
        if (overwrite.booleanValue()) {
            put(fs.create(path, true), content);
            return;
        }
        for (int left = BUSY_MAX; ; left--) {
            try {
                put((FSDataOutputStream) fs.createFile(path).must(ONLY_IF_ABSENT, true).build(), content);
                return;
            } catch (IOException failed) {
                int status = statusOf(failed);
                if (status == PRECONDITION_FAILED) {
                    if (Arrays.equals(content, read(fs, path))) {
                        return;
                    }
                    throw new FileAlreadyExistsException(path.toString());
                }
                if (status != CONFLICT || left == 0) {
                    throw failed;
                }
                pause();
            }
        }
    }

    public Boolean isPartialWriteVisible(Path path, Configuration hadoopConf) {
        return Boolean.FALSE;
    }

    private static byte[] bytesOf(Iterator actions) throws IOException {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        while (actions.hasNext()) {
            all.write(((String) actions.next()).getBytes("UTF-8"));
            all.write('\n');
        }
        return all.toByteArray();
    }

    private static void put(FSDataOutputStream out, byte[] content) throws IOException {
        out.write(content, 0, content.length);
        out.close();
    }

    private static byte[] read(FileSystem fs, Path path) throws IOException {
        InputStream in = fs.open(path);
        try {
            return in.readAllBytes();
        } finally {
            in.close();
        }
    }

    private static int statusOf(Throwable failed) {
        for (Throwable each = failed; each != null; each = each.getCause()) {
            if (each instanceof AwsServiceException) {
                return ((AwsServiceException) each).statusCode();
            }
            if (each instanceof RemoteFileChangedException
                    || each instanceof org.apache.hadoop.fs.FileAlreadyExistsException) {
                return PRECONDITION_FAILED;
            }
        }
        return 0;
    }

    private static void pause() throws IOException {
        try {
            Thread.sleep(BUSY_PAUSE_MS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new java.io.InterruptedIOException(interrupted.getMessage());
        }
    }
}
