package lowtide.connector;

import java.io.Serializable;

/**
 * A condition on the timestamp columns of one row, in SQL's three-valued logic: {@code evaluate} gives 1 for true,
 * -1 for false and 0 for null.
 */
interface Condition extends Serializable {
    int evaluate(long timestamp, long commit, long replaced);

    /** The columns that a condition may name. */
    enum Field {
        TIMESTAMP, START, COMMIT, REPLACED;

        long of(long timestamp, long commit, long replaced) {
            switch (this) {
                case TIMESTAMP:
                    return timestamp;
                case START:
                    return Omid.start(timestamp);
                case COMMIT:
                    return commit;
                default:
                    return replaced;
            }
        }
    }

    /** The comparisons, each with the sign of {@code Long.compare} that makes it true. */
    enum Comparison {
        LESS("<"), LESS_OR_EQUAL("<="), EQUAL("="), GREATER_OR_EQUAL(">="), GREATER(">"), NOT_EQUAL("<>");

        final String sign;

        Comparison(String sign) {
            this.sign = sign;
        }

        boolean holds(long left, long right) {
            switch (this) {
                case LESS:
                    return left < right;
                case LESS_OR_EQUAL:
                    return left <= right;
                case EQUAL:
                    return left == right;
                case GREATER_OR_EQUAL:
                    return left >= right;
                case GREATER:
                    return left > right;
                default:
                    return left != right;
            }
        }

        /** The same comparison read from right to left. */
        Comparison mirrored() {
            switch (this) {
                case LESS:
                    return GREATER;
                case LESS_OR_EQUAL:
                    return GREATER_OR_EQUAL;
                case GREATER_OR_EQUAL:
                    return LESS_OR_EQUAL;
                case GREATER:
                    return LESS;
                default:
                    return this;
            }
        }
    }

    private static int truth(boolean value) {
        return value ? 1 : -1;
    }

    static Condition isNull(Field field) {
        return (timestamp, commit, replaced) -> truth(field.of(timestamp, commit, replaced) == Omid.NONE);
    }

    static Condition compare(Field field, Comparison comparison, long constant) {
        return (timestamp, commit, replaced) -> {
            long value = field.of(timestamp, commit, replaced);
            return value == Omid.NONE ? 0 : truth(comparison.holds(value, constant));
        };
    }

    static Condition compare(Field left, Comparison comparison, Field right) {
        return (timestamp, commit, replaced) -> {
            long one = left.of(timestamp, commit, replaced);
            long other = right.of(timestamp, commit, replaced);
            return one == Omid.NONE || other == Omid.NONE ? 0 : truth(comparison.holds(one, other));
        };
    }

    static Condition in(Field field, LongSet set) {
        return (timestamp, commit, replaced) -> {
            long value = field.of(timestamp, commit, replaced);
            return value == Omid.NONE ? 0 : truth(set.contains(value));
        };
    }

    static Condition not(Condition inner) {
        return (timestamp, commit, replaced) -> -inner.evaluate(timestamp, commit, replaced);
    }

    static Condition and(Condition left, Condition right) {
        return (timestamp, commit, replaced) -> Math.min(left.evaluate(timestamp, commit, replaced),
                right.evaluate(timestamp, commit, replaced));
    }

    static Condition or(Condition left, Condition right) {
        return (timestamp, commit, replaced) -> Math.max(left.evaluate(timestamp, commit, replaced),
                right.evaluate(timestamp, commit, replaced));
    }
}
