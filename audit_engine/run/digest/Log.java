package io.seawall.audit;

import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.unsafe.types.UTF8String;

/** What one task sees of one log: its names, and those who speak of it. */
final class Log {
    final int partition;
    private final long first; // of its topic's id, as Ends has it: beside it, where it is compared
    private final long second;
    private final long last;
    private final int length;
    private final UTF8String cluster;
    private final UTF8String topicId;
    private long nameFirst; // the same of its topic's name
    private long nameSecond;
    private long nameLast;
    private int nameLength;
    private UTF8String topic;
    private Emitter firstEmitter;
    private Emitter secondEmitter;
    private Emitter thirdEmitter;
    private Speaker firstSpeaker;
    private Speaker secondSpeaker;
    private Speaker thirdSpeaker;
    private Emitter[] emitters = new Emitter[4]; // of all of them
    private Speaker[] speakers = new Speaker[4];
    private int count = 0;

    Log(TaskDigest.Said said) {
        partition = said.partition;
        first = said.topicEnds.first;
        second = said.topicEnds.second;
        last = said.topicEnds.last;
        length = said.topicEnds.length;
        cluster = said.emitter.name.cluster;
        topicId = said.topicId.clone();
    }

    boolean is(TaskDigest.Said said) {
        Ends ends = said.topicEnds;
        return partition == said.partition
            && first == ends.first
            && last == ends.last
            && second == ends.second
            && length == ends.length
            && cluster == said.emitter.name.cluster
            && (ends.areAll() || topicId.equals(said.topicId));
    }

    /** Whether it is audited by this name; it is known by the greatest of those. */
    boolean call(UTF8String name, Ends ends, Kinds kinds) {
        if (name == null) {
            return false;
        }
        boolean isSame = topic != null && nameFirst == ends.first && nameLast == ends.last && nameSecond == ends.second;
        if (isSame && nameLength == ends.length && (ends.areAll() || topic.equals(name))) {
            return true;
        }
        if (!kinds.isAudited(name)) {
            return false;
        }
        if (topic == null || topic.compareTo(name) < 0) {
            topic = name.clone();
            nameFirst = ends.first;
            nameSecond = ends.second;
            nameLast = ends.last;
            nameLength = ends.length;
        }
        return true;
    }

    Speaker speaker(Emitter emitter) {
        if (emitter == firstEmitter) {
            return firstSpeaker;
        }
        if (emitter == secondEmitter) {
            return secondSpeaker;
        }
        if (emitter == thirdEmitter) {
            return thirdSpeaker;
        }
        for (int at = 3; at < count; at++) {
            if (emitters[at] == emitter) {
                return speakers[at];
            }
        }
        return begin(emitter);
    }

    private Speaker begin(Emitter emitter) {
        if (count == speakers.length) {
            emitters = (Emitter[]) Arrays.copyOf(emitters, 2 * count);
            speakers = (Speaker[]) Arrays.copyOf(speakers, 2 * count);
        }
        Speaker found = new Speaker(emitter.name);
        emitters[count] = emitter;
        speakers[count++] = found;
        if (count == 1) {
            firstEmitter = emitter;
            firstSpeaker = found;
        } else if (count == 2) {
            secondEmitter = emitter;
            secondSpeaker = found;
        } else if (count == 3) {
            thirdEmitter = emitter;
            thirdSpeaker = found;
        }
        return found;
    }

    InternalRow row(long readingsMax) {
        long readings = 0;
        for (int at = 0; at < count; at++) {
            readings += speakers[at].readingBytes();
        }
        Packed packed = new Packed(new byte[64]);
        packed.write(count);
        for (int at = 0; at < count; at++) {
            speakers[at].pack(packed, readings <= readingsMax);
        }
        Object[] found = new Object[TaskDigest.COLUMNS];
        found[0] = Integer.valueOf(TaskDigest.OF_LOG);
        found[1] = cluster;
        found[20] = topicId;
        found[21] = Integer.valueOf(partition);
        found[22] = topic;
        found[23] = packed.written();
        return new GenericInternalRow(found);
    }
}
