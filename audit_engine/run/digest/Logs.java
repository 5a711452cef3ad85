package io.seawall.audit;

import java.util.ArrayDeque;

/** Logs by name: where one is, is told by two looks, one for the table and one for the log. */
final class Logs {
    int size = 0;
    private Log[] table = new Log[1024];
    private long[] places = new long[1024];

    static long placeOf(Ends topicId, int partition) {
        long hash = topicId.hash() + partition * 0x9E3779B97F4A7C15L;
        return hash ^ (hash >>> 32);
    }

    /** Nothing but a look, at what is to be looked at soon. */
    long lookAt(long place) {
        Log found = table[(int) place & (table.length - 1)];
        return found == null ? 0 : found.partition;
    }

    /** `said` names it; its cluster is the same object for all of a cluster's logs. */
    Log of(TaskDigest.Said said) {
        int at = (int) said.place & (table.length - 1);
        while (table[at] != null) {
            if (places[at] == said.place && table[at].is(said)) {
                return table[at];
            }
            at = (at + 1) & (table.length - 1);
        }
        if (2 * ++size > table.length) {
            grow();
            at = freeFor(said.place);
        }
        table[at] = new Log(said);
        places[at] = said.place;
        return table[at];
    }

    private int freeFor(long place) {
        int at = (int) place & (table.length - 1);
        while (table[at] != null) {
            at = (at + 1) & (table.length - 1);
        }
        return at;
    }

    private void grow() {
        Log[] oldTable = table;
        long[] oldPlaces = places;
        table = new Log[2 * oldTable.length];
        places = new long[table.length];
        for (int old = 0; old < oldTable.length; old++) {
            if (oldTable[old] != null) {
                int at = freeFor(oldPlaces[old]);
                table[at] = oldTable[old];
                places[at] = oldPlaces[old];
            }
        }
    }

    void addRows(long readingsMax, ArrayDeque out) {
        for (int at = 0; at < table.length; at++) {
            if (table[at] != null) {
                out.add(table[at].row(readingsMax));
            }
        }
    }
}
