package io.seawall.audit;

import java.util.Arrays;

/** Whole numbers behind each other, small ones, of either sign, in few bytes. */
class Packed {
    private static final int LONGEST = 10;

    private byte[] bytes;
    private int at = 0;

    Packed(byte[] bytes) {
        this.bytes = bytes;
    }

    void write(long value) {
        if (at + LONGEST > bytes.length) {
            bytes = Arrays.copyOf(bytes, 2 * bytes.length + LONGEST);
        }
        at = write(bytes, at, value);
    }

    /** Where the next goes. */
    static int write(byte[] bytes, int at, long value) {
        long left = (value << 1) ^ (value >> 63);
        while ((left & ~0x7FL) != 0) {
            bytes[at++] = (byte) ((left & 0x7F) | 0x80);
            left >>>= 7;
        }
        bytes[at++] = (byte) left;
        return at;
    }

    void append(byte[] from, int begin, int end) {
        if (at + end - begin > bytes.length) {
            bytes = Arrays.copyOf(bytes, 2 * (at + end - begin));
        }
        System.arraycopy(from, begin, bytes, at, end - begin);
        at += end - begin;
    }

    long read() {
        long found = 0;
        for (int shift = 0; ; shift += 7) {
            byte each = bytes[at++];
            found |= (long) (each & 0x7F) << shift;
            if (each >= 0) {
                return (found >>> 1) ^ -(found & 1);
            }
        }
    }

    void writeBytes(byte[] value) {
        write(value.length);
        append(value, 0, value.length);
    }

    byte[] readBytes() {
        int length = (int) read();
        at += length;
        return Arrays.copyOfRange(bytes, at - length, at);
    }

    byte[] written() {
        return Arrays.copyOf(bytes, at);
    }

    int size() {
        return at;
    }

    void setWritten(byte[] value) {
        bytes = value;
        at = value.length;
    }

    boolean isAtEnd() {
        return at == bytes.length;
    }
}
