package lowtide.connector;

import org.apache.spark.sql.connector.metric.CustomSumMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** The sums that Spark's SQL page shows. Spark makes them by class name: public, without arguments. */
public final class Metrics {
    private Metrics() {
    }

    /** What a task has read so far. */
    static CustomTaskMetric[] read(long cells, long bytes) {
        return new CustomTaskMetric[] {new Value(CellsRead.NAME, cells), new Value(BytesRead.NAME, bytes)};
    }

    /** The value of one task. */
    record Value(String name, long value) implements CustomTaskMetric {
    }

    /** A sum over tasks. */
    abstract static class Sum extends CustomSumMetric {
        private final String name;

        Sum(String name) {
            this.name = name;
        }

        @Override
        public String name() {
            return name;
        }

        @Override
        public String description() {
            return name;
        }
    }

    /** KeyValues seen by scans. */
    public static final class CellsRead extends Sum {
        static final String NAME = "cells read";

        public CellsRead() {
            super(NAME);
        }
    }

    /** Their bytes. */
    public static final class BytesRead extends Sum {
        static final String NAME = "bytes read";

        public BytesRead() {
            super(NAME);
        }
    }

    /** Mutations that HBase acknowledged. */
    public static final class MutationsWritten extends Sum {
        static final String NAME = "mutations written";

        public MutationsWritten() {
            super(NAME);
        }
    }

    /** Guarded mutations whose guard did not hold. */
    public static final class MutationsRefused extends Sum {
        static final String NAME = "mutations refused";

        public MutationsRefused() {
            super(NAME);
        }
    }

    /** Bytes of the mutations that HBase acknowledged. */
    public static final class BytesWritten extends Sum {
        static final String NAME = "bytes written";

        public BytesWritten() {
            super(NAME);
        }
    }
}
