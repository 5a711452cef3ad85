package io.seawall.audit;

import org.apache.spark.unsafe.types.UTF8String;

/** Who says something. */
final class Name implements Comparable {
    UTF8String cluster;
    int broker;
    UTF8String component;
    long incarnation;

    Name copied() {
        Name found = new Name();
        found.cluster = cluster;
        found.broker = broker;
        found.component = component;
        found.incarnation = incarnation;
        return found;
    }

    boolean is(UTF8String ofCluster, int ofBroker, UTF8String ofComponent, long ofIncarnation) {
        return broker == ofBroker
            && incarnation == ofIncarnation
            && component.equals(ofComponent)
            && (cluster == null ? ofCluster == null : cluster.equals(ofCluster));
    }

    public int hashCode() {
        int found = (int) (incarnation ^ (incarnation >>> 32));
        found = 31 * found + component.hashCode();
        return 31 * (31 * found + broker) + (cluster == null ? 0 : cluster.hashCode());
    }

    public boolean equals(Object of) {
        Name other = (Name) of;
        return is(other.cluster, other.broker, other.component, other.incarnation);
    }

    /** Of one cluster, as the machine has events of one moment. */
    public int compareTo(Object of) {
        Name other = (Name) of;
        if (broker != other.broker) {
            return broker < other.broker ? -1 : 1;
        }
        int found = component.compareTo(other.component);
        return found != 0 ? found : Long.compare(incarnation, other.incarnation);
    }
}
