package io.seawall.ingest;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.Serializable;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
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

    private final int columns;
    private final int bytesMax;
    private final byte[] beforeKind;
    private final Map forms = new HashMap(); // by UTF8String, the kind
    private transient Object[] last; // a kind that was asked for, and its form: the next one is mostly the same

    public PlainEvents(String spelled) throws IOException {
        JsonNode all = new ObjectMapper().readTree(spelled);
        columns = in(all, "columns").asInt();
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
        Object[] kept = new Object[columns];
        if (form.end(value, 0, kept) != length || !isUtf8(value)) {
            return null;
        }
        return new GenericInternalRow(kept);
    }

    /** The same of a text that is found by what its form is called, not by what it says of itself. */
    public InternalRow readOf(UTF8String name, UTF8String text) {
        if (name == null || text == null || text.numBytes() > bytesMax) {
            return null;
        }
        Object[] known = last; // one read: tasks may share it
        if (known == null || !name.equals(known[0])) {
            known = new Object[] {name.clone(), forms.get(name)};
            last = known;
        }
        Form form = (Form) known[1];
        if (form == null) {
            return null;
        }
        byte[] value = text.getBytes();
        Object[] kept = new Object[columns];
        return form.end(value, 0, kept) == value.length ? new GenericInternalRow(kept) : null;
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

    private static Form form(JsonNode spelled) throws IOException {
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
            return new Keep(in(of, 0).asInt(), in(of, 1).asText(), form(in(of, 2)));
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
            return new All(each);
        }
        throw new IOException("no form is called " + name);
    }

    abstract static class Form implements Serializable {
        /** Behind what looks so from `at`, or NO. */
        abstract int end(byte[] value, int at, Object[] kept);
    }

    static final class Same extends Form {
        private final byte[] wanted;

        Same(byte[] wanted) {
            this.wanted = wanted;
        }

        int end(byte[] value, int at, Object[] kept) {
            return startsWith(value, at, wanted) ? at + wanted.length : NO;
        }
    }

    static final class OneOf extends Form {
        private final Form[] each;

        OneOf(Form[] each) {
            this.each = each;
        }

        int end(byte[] value, int at, Object[] kept) {
            for (int n = 0; n < each.length; n++) {
                int end = each[n].end(value, at, kept);
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

        int end(byte[] value, int at, Object[] kept) {
            for (int n = 0; n < each.length && at != NO; n++) {
                at = each[n].end(value, at, kept);
            }
            return at;
        }
    }

    static final class OrNull extends Form {
        private static final byte[] NULL = {'n', 'u', 'l', 'l'};
        private final Form other;

        OrNull(Form other) {
            this.other = other;
        }

        int end(byte[] value, int at, Object[] kept) {
            return startsWith(value, at, NULL) ? at + NULL.length : other.end(value, at, kept);
        }
    }

    static final class Maybe extends Form {
        private final Form form;

        Maybe(Form form) {
            this.form = form;
        }

        int end(byte[] value, int at, Object[] kept) {
            int end = form.end(value, at, kept);
            return end == NO ? at : end;
        }
    }

    static final class Many extends Form {
        private final Form each;

        Many(Form each) {
            this.each = each;
        }

        int end(byte[] value, int at, Object[] kept) {
            if (at + 1 >= value.length || value[at] != '[') {
                return NO;
            }
            if (value[at + 1] == ']') {
                return at + 2;
            }
            do {
                at = each.end(value, at + 1, kept);
            } while (at != NO && at < value.length && value[at] == ',');
            return at != NO && at < value.length && value[at] == ']' ? at + 1 : NO;
        }
    }

    /** In quotation marks. */
    static final class Text extends Form {
        private static final byte[] ESCAPED = {'"', '\\', 'b', 'f', 'n', 'r', 't'};
        private final boolean escapes;

        Text(boolean escapes) {
            this.escapes = escapes;
        }

        int end(byte[] value, int at, Object[] kept) {
            if (at >= value.length || value[at] != '"') {
                return NO;
            }
            for (at++; at < value.length; at++) {
                byte each = value[at];
                if (each == '"') {
                    return at + 1;
                }
                if (each == '\\') {
                    if (!escapes || ++at == value.length || !isEscaped(value[at])) {
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

        int end(byte[] value, int at, Object[] kept) {
            int first = at < value.length && value[at] == '-' ? at + 1 : at;
            int end = first;
            while (end < value.length && value[end] >= '0' && value[end] <= '9') {
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
        private final char as;
        private final Form form;

        Keep(int column, String as, Form form) {
            this.column = column;
            this.as = as.charAt(0);
            this.form = form;
        }

        int end(byte[] value, int at, Object[] kept) {
            int end = form.end(value, at, kept);
            if (end != NO) {
                kept[column] = piece(value, at, end);
            }
            return end;
        }

        private Object piece(byte[] value, int at, int end) {
            if (as == 't') {
                return UTF8String.fromBytes(value, at + 1, end - at - 2);
            }
            if (as == 'r') {
                return UTF8String.fromBytes(value, at, end - at);
            }
            if (as == 'l') {
                return Long.valueOf(parsed(value, at, end));
            }
            if (as == 'i') {
                return Integer.valueOf((int) parsed(value, at, end));
            }
            return Boolean.TRUE;
        }
    }
}
