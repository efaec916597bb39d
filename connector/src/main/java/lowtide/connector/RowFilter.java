package lowtide.connector;

import java.io.Serializable;

/**
 * A filter on the timestamps of a row of the view {@code versions}. {@link Omid#NONE} stands for null. Reading asks
 * it once a cell, so the shapes that jobs use have classes of their own.
 */
interface RowFilter extends Serializable {
    boolean test(long timestamp, long commit, long replaced);

    /** Lets everything through. */
    RowFilter ALL = new All();

    /** See {@link #ALL}. */
    final class All implements RowFilter {
        private static final long serialVersionUID = 1;

        @Override
        public boolean test(long timestamp, long commit, long replaced) {
            return true;
        }
    }

    /** {@code commit_ts IS NULL OR start_ts IN (...)}; an empty set leaves the first half. */
    final class Suspects implements RowFilter {
        private static final long serialVersionUID = 1;
        private final LongSet starts;
        private final boolean any;

        Suspects(LongSet starts) {
            this.starts = starts;
            this.any = !starts.isEmpty();
        }

        @Override
        public boolean test(long timestamp, long commit, long replaced) {
            return commit == Omid.NONE || any && starts.contains(Omid.start(timestamp));
        }
    }

    /** An upper bound of timestamps beside another filter. */
    final class Before implements RowFilter {
        private static final long serialVersionUID = 1;
        private final long to;
        private final RowFilter filter;

        Before(long to, RowFilter filter) {
            this.to = to;
            this.filter = filter;
        }

        @Override
        public boolean test(long timestamp, long commit, long replaced) {
            return timestamp < to && filter.test(timestamp, commit, replaced);
        }
    }

    /** What is shown at a read point: committed before it, and not yet replaced. */
    final class AtReadPoint implements RowFilter {
        private static final long serialVersionUID = 1;
        private final long readPoint;

        AtReadPoint(long readPoint) {
            this.readPoint = readPoint;
        }

        @Override
        public boolean test(long timestamp, long commit, long replaced) {
            return commit != Omid.NONE && commit < readPoint && (replaced == Omid.NONE || replaced >= readPoint);
        }
    }

    /** Any expression over the three; only what is true passes, null does not. */
    final class Tree implements RowFilter {
        private static final long serialVersionUID = 1;
        private final Condition condition;

        Tree(Condition condition) {
            this.condition = condition;
        }

        @Override
        public boolean test(long timestamp, long commit, long replaced) {
            return condition.evaluate(timestamp, commit, replaced) > 0;
        }
    }
}
