package io.seawall.audit;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.seawall.ingest.PlainEvents;
import java.io.IOException;
import java.io.Serializable;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * What is asked of an event by its kind. It knows no kinds: they come as JSON, a list of names for each of `shared`,
 * `retirement`, `baseline`, `heartbeat`, `no_act`, `plain`, `reading`, `closed`; and `not_audited`, topics; `log_dir`,
 * the source of what was seen on a disk; `ahead_ms`, by how much a record's time may be later than its segment was told.
 */
final class Kinds implements Serializable {
    final PlainEvents plain; // null: no body is read
    final byte[] logDir;
    final long aheadMaxMs;
    private final Map known = new HashMap(); // by UTF8String
    private final Kind stranger = new Kind(null);
    private final Set notAudited;

    Kinds(String spelled, PlainEvents plain) throws IOException {
        JsonNode all = new ObjectMapper().readTree(spelled);
        this.plain = plain;
        logDir = ((JsonNode) all.get("log_dir")).asText().getBytes("UTF-8");
        aheadMaxMs = ((JsonNode) all.get("ahead_ms")).asLong();
        notAudited = texts((JsonNode) all.get("not_audited"));
        String[] asked = {"shared", "retirement", "baseline", "heartbeat", "no_act", "plain", "reading", "closed"};
        for (int at = 0; at < asked.length; at++) {
            JsonNode names = (JsonNode) all.get(asked[at]);
            for (int n = 0; n < names.size(); n++) {
                UTF8String name = UTF8String.fromString(((JsonNode) names.get(n)).asText());
                make(name).is(asked[at]);
            }
        }
    }

    /** One that nothing is asked of by name is an act, and no more. */
    Kind of(UTF8String name) {
        Kind found = (Kind) known.get(name);
        return found == null ? stranger : found;
    }

    private Kind make(UTF8String name) {
        Kind found = (Kind) known.get(name);
        if (found == null) {
            found = new Kind(plain == null ? null : plain.formOf(name));
            known.put(name, found);
        }
        return found;
    }

    boolean isAudited(UTF8String topic) {
        return !notAudited.contains(topic);
    }

    private static Set texts(JsonNode names) {
        Set found = new HashSet();
        for (int n = 0; n < names.size(); n++) {
            found.add(UTF8String.fromString(((JsonNode) names.get(n)).asText()));
        }
        return found;
    }

    static final class Kind implements Serializable {
        final PlainEvents.Form form; // null: its body is not read
        boolean isShared = false;
        boolean isRetirement = false;
        boolean isBaseline = false;
        boolean isHeartbeat = false;
        boolean isAct = true;
        boolean isPlain = false;
        boolean isReading = false;
        boolean isClosed = false;

        Kind(PlainEvents.Form form) {
            this.form = form;
        }

        void is(String what) {
            isShared |= what.equals("shared");
            isRetirement |= what.equals("retirement");
            isBaseline |= what.equals("baseline");
            isHeartbeat |= what.equals("heartbeat");
            isAct &= !what.equals("no_act");
            isPlain |= what.equals("plain");
            isReading |= what.equals("reading");
            isClosed |= what.equals("closed");
        }
    }
}
