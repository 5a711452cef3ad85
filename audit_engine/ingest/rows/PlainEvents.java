package io.seawall.ingest;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Events as our own writers spell them, cut out of their bytes in one pass; whatever is spelled otherwise is null.
 *
 * It knows nothing of events: how each kind is spelled comes from `plain.py` as JSON, a form being
 *
 *     {"is": TEXT}             these bytes            {"number": [MIN, MAX, DIGITS]}
 *     {"one": [TEXT, ...]}     one of them            {"text": ESCAPES}   ESCAPES: true where a backslash may be
 *     {"all": [FORM, ...]}     one behind the other   {"list": FORM}      [FORM,FORM,...]
 *     {"or_null": FORM}                               {"maybe": FORM}     or nothing
 *     {"keep": [COLUMN, AS, FORM]}   AS: text, raw, int, long, present
 *
 * No form goes back further than to where it began, so that no value takes longer than its length.
 * Compiled by Janino: no lambdas, no inferred type arguments.
 */
public final class PlainEvents implements Serializable {
    static final int NO = -1;
    private static final long NOT_ASCII = 0x8080808080808080L;

    private final char[] as; // by column
    private final int bytesMax;
    private final byte[] beforeKind;
    private final Map forms = new HashMap(); // by UTF8String, the kind
    private transient Object[] last; // a kind that was asked for, and its form: the next one is mostly the same

    public PlainEvents(String spelled) throws IOException {
        JsonNode all = new ObjectMapper().readTree(spelled);
        as = new char[in(all, "columns").asInt()];
        bytesMax = in(all, "bytes_max").asInt();
        beforeKind = bytes(in(all, "before_kind"));
        Iterator kinds = in(all, "kinds").fieldNames();
        while (kinds.hasNext()) {
            String kind = (String) kinds.next();
            forms.put(UTF8String.fromString(kind), form(in(in(all, "kinds"), kind)));
        }
    }

    /** The columns of an event, or null. Its texts are pieces of `value`, not copies. */
    public InternalRow read(byte[] value) {
        int length = value.length;
        if (length > bytesMax) {
            return null;
        }
        int kindAt = lastIndexOf(value, beforeKind);
        if (kindAt == NO) {
            return null;
        }
        int from = kindAt + beforeKind.length;
        int to = from;
        while (to < length && value[to] != '"') {
            to++;
        }
        Form form = (Form) forms.get(UTF8String.fromBytes(value, from, to - from));
        if (form == null) {
            return null;
        }
        Kept kept = nothing();
        return kept.isAll(form, value, 0, length) && isUtf8(value) ? row(kept) : null;
    }

    /** The same of a text that is found by what its form is called, not by what it says of itself. */
    public InternalRow readOf(UTF8String name, UTF8String text) {
        if (name == null || text == null) {
            return null;
        }
        Object[] known = last; // one read: tasks may share it
        if (known == null || !name.equals(known[0])) {
            known = new Object[] {name.clone(), forms.get(name)};
            last = known;
        }
        Kept kept = nothing();
        return cut((Form) known[1], text, kept) ? row(kept) : null;
    }

    /** How a kind is spelled, or null. */
    public Form formOf(UTF8String name) {
        return (Form) forms.get(name);
    }

    /** Room for what is kept of one text at a time. */
    public Kept nothing() {
        return new Kept(as.length);
    }

    /** Whether all of a text looks so; then `kept` has its pieces, for as long as its bytes stay what they are. */
    public boolean cut(Form form, UTF8String text, Kept kept) {
        int length = text.numBytes();
        if (form == null || length > bytesMax) {
            return false;
        }
        Object base = text.getBaseObject();
        if (!(base instanceof byte[])) {
            return kept.isAll(form, text.getBytes(), 0, length);
        }
        int from = (int) (text.getBaseOffset() - Platform.BYTE_ARRAY_OFFSET);
        return kept.isAll(form, (byte[]) base, from, from + length);
    }

    private InternalRow row(Kept kept) {
        Object[] found = new Object[as.length];
        for (int column = 0; column < found.length; column++) {
            if (kept.has(column)) {
                found[column] = piece(kept, column);
            }
        }
        return new GenericInternalRow(found);
    }

    private Object piece(Kept kept, int column) {
        if (as[column] == 't') {
            return kept.text(column);
        }
        if (as[column] == 'r') {
            return kept.raw(column);
        }
        if (as[column] == 'l') {
            return Long.valueOf(kept.number(column));
        }
        if (as[column] == 'i') {
            return Integer.valueOf((int) kept.number(column));
        }
        return Boolean.TRUE;
    }

    private static boolean isUtf8(byte[] value) {
        long signs = 0;
        int at = 0;
        for (; at + 8 <= value.length; at += 8) {
            signs |= Platform.getLong(value, Platform.BYTE_ARRAY_OFFSET + at);
        }
        for (; at < value.length; at++) {
            signs |= value[at]; // of a negative one all upper bits are set
        }
        return (signs & NOT_ASCII) == 0 || UTF8String.fromBytes(value).isValid();
    }

    /** Where `wanted` begins for the last time. */
    private static int lastIndexOf(byte[] value, byte[] wanted) {
        byte first = wanted[0];
        byte second = wanted[1];
        for (int at = value.length - wanted.length; at >= 0; at--) {
            if (value[at] == first && value[at + 1] == second && startsWith(value, at, wanted)) {
                return at;
            }
        }
        return NO;
    }

    static boolean startsWith(byte[] value, int at, byte[] wanted) {
        int end = at + wanted.length;
        return end <= value.length && Arrays.equals(value, at, end, wanted, 0, wanted.length);
    }

    private static byte[] bytes(JsonNode text) throws IOException {
        return text.asText().getBytes("UTF-8");
    }

    private static JsonNode in(JsonNode members, String name) {
        return (JsonNode) members.get(name); // Janino takes it for a method of the interface
    }

    private static JsonNode in(JsonNode members, int index) {
        return (JsonNode) members.get(index);
    }

    private Form form(JsonNode spelled) throws IOException {
        String name = (String) spelled.fieldNames().next();
        JsonNode of = in(spelled, name);
        if (name.equals("is")) {
            return new Same(bytes(of));
        }
        if (name.equals("text")) {
            return new Text(of.asBoolean());
        }
        if (name.equals("number")) {
            return new Whole(in(of, 0).asLong(), in(of, 1).asLong(), in(of, 2).asInt());
        }
        if (name.equals("keep")) {
            as[in(of, 0).asInt()] = in(of, 1).asText().charAt(0);
            return new Keep(in(of, 0).asInt(), form(in(of, 2)));
        }
        if (name.equals("or_null")) {
            return new OrNull(form(of));
        }
        if (name.equals("maybe")) {
            return new Maybe(form(of));
        }
        if (name.equals("list")) {
            return new Many(form(of));
        }
        Form[] each = new Form[of.size()];
        for (int n = 0; n < each.length; n++) {
            each[n] = name.equals("one") ? new Same(bytes(in(of, n))) : form(in(of, n));
        }
        if (name.equals("one")) {
            return new OneOf(each);
        }
        if (name.equals("all")) {
            return new All(joined(each));
        }
        throw new IOException("no form is called " + name);
    }

    /** With what is to be the same, one behind the other, as one. */
    private static Form[] joined(Form[] each) {
        List found = new ArrayList();
        for (int n = 0; n < each.length; n++) {
            Form before = found.isEmpty() ? null : (Form) found.get(found.size() - 1);
            if (each[n] instanceof Same && before instanceof Same) {
                found.set(found.size() - 1, ((Same) before).and((Same) each[n]));
            } else {
                found.add(each[n]);
            }
        }
        return (Form[]) found.toArray(new Form[found.size()]);
    }

    /** Bytes, and where among them lies what is kept of each column. */
    public static final class Kept {
        byte[] bytes;
        int limit;
        final int[] from;
        final int[] to;

        Kept(int columns) {
            from = new int[columns];
            to = new int[columns];
        }

        boolean isAll(Form form, byte[] of, int at, int end) {
            bytes = of;
            limit = end;
            Arrays.fill(from, NO);
            return form.end(this, at) == end;
        }

        public boolean has(int column) {
            return from[column] != NO;
        }

        public long number(int column) {
            return parsed(bytes, from[column], to[column]);
        }

        /** Whether this is what is in its quotation marks. */
        public boolean is(int column, byte[] wanted) {
            int begin = from[column] + 1;
            return has(column) && Arrays.equals(bytes, begin, to[column] - 1, wanted, 0, wanted.length);
        }

        /** What is in its quotation marks. */
        public UTF8String text(int column) {
            return UTF8String.fromBytes(bytes, from[column] + 1, to[column] - from[column] - 2);
        }

        UTF8String raw(int column) {
            return UTF8String.fromBytes(bytes, from[column], to[column] - from[column]);
        }
    }

    public abstract static class Form implements Serializable {
        /** Behind what looks so from `at`, or NO. */
        abstract int end(Kept in, int at);
    }

    static final class Same extends Form {
        private final byte[] wanted;
        private final long[] words; // of eight bytes each; the last one ends where all do

        Same(byte[] wanted) {
            this.wanted = wanted;
            words = new long[wanted.length < 8 ? 0 : (wanted.length + 7) / 8];
            for (int n = 0; n < words.length; n++) {
                int at = Math.min(8 * n, wanted.length - 8);
                words[n] = Platform.getLong(wanted, Platform.BYTE_ARRAY_OFFSET + at);
            }
        }

        Same and(Same other) {
            byte[] both = Arrays.copyOf(wanted, wanted.length + other.wanted.length);
            System.arraycopy(other.wanted, 0, both, wanted.length, other.wanted.length);
            return new Same(both);
        }

        int end(Kept in, int at) {
            int end = at + wanted.length;
            if (end > in.limit) {
                return NO;
            }
            byte[] value = in.bytes;
            int count = words.length;
            if (count == 0) {
                for (int n = 0; n < wanted.length; n++) {
                    if (value[at + n] != wanted[n]) {
                        return NO;
                    }
                }
                return end;
            }
            for (int n = 0; n < count - 1; n++) {
                if (Platform.getLong(value, Platform.BYTE_ARRAY_OFFSET + at + 8 * n) != words[n]) {
                    return NO;
                }
            }
            return Platform.getLong(value, Platform.BYTE_ARRAY_OFFSET + end - 8) == words[count - 1] ? end : NO;
        }
    }

    static final class OneOf extends Form {
        private final Form[] each;

        OneOf(Form[] each) {
            this.each = each;
        }

        int end(Kept in, int at) {
            for (int n = 0; n < each.length; n++) {
                int end = each[n].end(in, at);
                if (end != NO) {
                    return end;
                }
            }
            return NO;
        }
    }

    static final class All extends Form {
        private final Form[] each;

        All(Form[] each) {
            this.each = each;
        }

        int end(Kept in, int at) {
            for (int n = 0; n < each.length && at != NO; n++) {
                at = each[n].end(in, at);
            }
            return at;
        }
    }

    static final class OrNull extends Form {
        private static final byte[] NULL = {'n', 'u', 'l', 'l'};
        private final Form none = new Same(NULL);
        private final Form other;

        OrNull(Form other) {
            this.other = other;
        }

        int end(Kept in, int at) {
            return at < in.limit && in.bytes[at] == 'n' ? none.end(in, at) : other.end(in, at);
        }
    }

    static final class Maybe extends Form {
        private final Form form;

        Maybe(Form form) {
            this.form = form;
        }

        int end(Kept in, int at) {
            int end = form.end(in, at);
            return end == NO ? at : end;
        }
    }

    static final class Many extends Form {
        private final Form each;

        Many(Form each) {
            this.each = each;
        }

        int end(Kept in, int at) {
            byte[] value = in.bytes;
            if (at + 1 >= in.limit || value[at] != '[') {
                return NO;
            }
            if (value[at + 1] == ']') {
                return at + 2;
            }
            do {
                at = each.end(in, at + 1);
            } while (at != NO && at < in.limit && value[at] == ',');
            return at != NO && at < in.limit && value[at] == ']' ? at + 1 : NO;
        }
    }

    /** In quotation marks. */
    static final class Text extends Form {
        private static final byte[] ESCAPED = {'"', '\\', 'b', 'f', 'n', 'r', 't'};
        private final boolean escapes;

        Text(boolean escapes) {
            this.escapes = escapes;
        }

        int end(Kept in, int at) {
            byte[] value = in.bytes;
            int limit = in.limit;
            if (at >= limit || value[at] != '"') {
                return NO;
            }
            for (at++; at < limit; at++) {
                byte each = value[at];
                if (each == '"') {
                    return at + 1;
                }
                if (each == '\\') {
                    if (!escapes || ++at == limit || !isEscaped(value[at])) {
                        return NO;
                    }
                } else if (each >= 0 && each < ' ') {
                    return NO;
                }
            }
            return NO;
        }

        private static boolean isEscaped(byte each) {
            for (int n = 0; n < ESCAPED.length; n++) {
                if (ESCAPED[n] == each) {
                    return true;
                }
            }
            return false;
        }
    }

    /** Without a zero before it, from `min` to `max`, of at most that many digits. */
    static final class Whole extends Form {
        private static final int LONGEST = 19; // digits that 64 bits surely hold below a 9
        private final long min;
        private final long max;
        private final int digitsMax;

        Whole(long min, long max, int digitsMax) {
            this.min = min;
            this.max = max;
            this.digitsMax = digitsMax;
        }

        int end(Kept in, int at) {
            byte[] value = in.bytes;
            int limit = in.limit;
            int first = at < limit && value[at] == '-' ? at + 1 : at;
            int end = first;
            while (end < limit && value[end] >= '0' && value[end] <= '9') {
                end++;
            }
            int digits = end - first;
            boolean hasZero = digits > 0 && value[first] == '0' && (digits > 1 || first > at);
            if (digits == 0 || digits > digitsMax || hasZero || (digits == LONGEST && value[first] == '9')) {
                return NO;
            }
            if (digits < digitsMax && first == at && min <= 0) {
                return end; // nearly always
            }
            long found = parsed(value, at, end);
            return found >= min && found <= max ? end : NO;
        }
    }

    /** Within 64 bits, as `Whole` has seen to. */
    static long parsed(byte[] value, int from, int to) {
        boolean isNegative = value[from] == '-';
        long found = 0;
        for (int at = isNegative ? from + 1 : from; at < to; at++) {
            found = 10 * found + (value[at] - '0');
        }
        return isNegative ? -found : found;
    }

    static final class Keep extends Form {
        private final int column;
        private final Form form;

        Keep(int column, Form form) {
            this.column = column;
            this.form = form;
        }

        int end(Kept in, int at) {
            int end = form.end(in, at);
            if (end != NO) {
                in.from[column] = at;
                in.to[column] = end;
            }
            return end;
        }
    }
}
