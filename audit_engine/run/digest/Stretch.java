package io.seawall.audit;

/** Numbers that follow each other, in the order in which they are judged; packed is what they read: by how much
 * each reading is later, and higher, than the one before it. */
final class Stretch extends Packed implements Comparable {
    final long firstNumber;
    final long firstMs;
    long lastNumber;
    long lastMs;
    private final long firstSeq;
    private long lastSeq;

    Stretch(long number, long seq, long atMs) {
        super(null);
        firstNumber = number;
        firstSeq = seq;
        firstMs = atMs;
    }

    Stretch(Packed packed) {
        super(null);
        firstNumber = packed.read();
        lastNumber = firstNumber + packed.read();
        firstSeq = packed.read();
        lastSeq = packed.read();
        firstMs = packed.read();
        lastMs = packed.read();
        setWritten(packed.readBytes());
    }

    void pack(Packed packed, boolean withReadings) {
        packed.write(firstNumber);
        packed.write(lastNumber - firstNumber);
        packed.write(firstSeq);
        packed.write(lastSeq);
        packed.write(firstMs);
        packed.write(lastMs);
        packed.writeBytes(withReadings ? written() : new byte[0]);
    }

    boolean goesOn(long number, long seq, long atMs) {
        return number == lastNumber + 1 && seq > lastSeq && atMs >= lastMs;
    }

    boolean isFollowedBy(Stretch other) {
        return goesOn(other.firstNumber, other.firstSeq, other.firstMs);
    }

    void end(long number, long seq, long atMs, Packed readings) {
        lastNumber = number;
        lastSeq = seq;
        lastMs = atMs;
        setWritten(readings.written());
    }

    public int compareTo(Object of) {
        Stretch other = (Stretch) of;
        int found = Long.compare(firstNumber, other.firstNumber);
        return found != 0 ? found : Long.compare(lastNumber, other.lastNumber);
    }
}
