package io.seawall.screen;

import java.io.Serializable;
import java.util.Arrays;
import org.apache.spark.unsafe.types.UTF8String;

/** The words of a statement with places in them, and the numbers that are put there: a place in quotation marks is one. */
public final class Wording implements Serializable {
    private final byte[][] places;
    private final byte[] fromMs;
    private final byte[] asOfMs;

    public Wording(String from, String asOf, String events, String watermark, long fromMs, long asOfMs) {
        places = new byte[][] {bytes(from), bytes(asOf), bytes(events), bytes(watermark)};
        this.fromMs = bytes(Long.toString(fromMs));
        this.asOfMs = bytes(Long.toString(asOfMs));
    }

    public UTF8String put(UTF8String words, long events, long watermark) {
        byte[][] numbers = {fromMs, asOfMs, bytes(Long.toString(events)), bytes(Long.toString(watermark))};
        byte[] of = words.getBytes();
        byte[] found = new byte[of.length + 64];
        int size = 0;
        int at = 0;
        while (at < of.length) {
            int place = of[at] == '@' ? placeAt(of, at) : -1;
            if (place == -1) {
                found = room(found, size + 1);
                found[size++] = of[at++];
                continue;
            }
            int end = at + places[place].length;
            if (at > 0 && of[at - 1] == '"' && end < of.length && of[end] == '"') {
                size--;
                end++;
            }
            byte[] number = numbers[place];
            found = room(found, size + number.length);
            System.arraycopy(number, 0, found, size, number.length);
            size += number.length;
            at = end;
        }
        return UTF8String.fromBytes(found, 0, size);
    }

    private int placeAt(byte[] of, int at) {
        for (int place = 0; place < places.length; place++) {
            int end = at + places[place].length;
            if (end <= of.length && Arrays.equals(of, at, end, places[place], 0, places[place].length)) {
                return place;
            }
        }
        return -1;
    }

    private static byte[] room(byte[] of, int size) {
        return size <= of.length ? of : Arrays.copyOf(of, 2 * size);
    }

    private static byte[] bytes(String text) {
        return UTF8String.fromString(text).getBytes();
    }
}
