package io.seawall.audit;

import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** A text by its first, second and last eight bytes, which are all of one that is neither short nor long. */
final class Ends {
    long first;
    long second;
    long last;
    int length;

    void set(UTF8String text) {
        Object base = text.getBaseObject();
        long at = text.getBaseOffset();
        length = text.numBytes();
        first = length >= 8 ? Platform.getLong(base, at) : text.hashCode();
        second = length >= 16 ? Platform.getLong(base, at + 8) : 0;
        last = length >= 8 ? Platform.getLong(base, at + length - 8) : 0;
    }

    boolean areThoseOf(Ends other) {
        return first == other.first && last == other.last && second == other.second && length == other.length;
    }

    boolean areAll() {
        return length >= 8 && length <= 24;
    }
}
