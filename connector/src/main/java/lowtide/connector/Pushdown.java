package lowtide.connector;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.TreeSet;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;

/**
 * What the connector takes over of a query's filters. A predicate is taken over as a whole or not at all; those taken
 * over are not checked again by Spark, so that the rows {@code unknown} and {@code end_of_range}, which have nulls
 * where others have timestamps, pass them.
 */
final class Pushdown implements Serializable {
    private static final long serialVersionUID = 1;
    private static final Comparator<byte[]> ORDER = (Comparator<byte[]> & Serializable) Bytes::compareTo;

    private final View view;
    private final boolean allVersions;

    /** Rows [start, stop); empty for no bound. */
    byte[] start = HConstants.EMPTY_START_ROW;
    byte[] stop = HConstants.EMPTY_END_ROW;
    /** Exactly these rows, ascending; null for all. */
    TreeSet<byte[]> rows;
    /** Exactly these families, or null for all. */
    TreeSet<byte[]> families;
    /** Exactly these qualifiers, or null for all (view cells). */
    TreeSet<byte[]> qualifiers;
    /** Timestamps [from, to). */
    long from = 0;
    long to = Long.MAX_VALUE;
    private Condition condition;
    private LongSet suspectStarts;
    private boolean onlySuspects;
    private boolean asksReplaced;

    Pushdown(Options options) {
        this.view = options.view;
        this.allVersions = view == View.VERSIONS || view == View.AS_OF || options.raw || options.allVersions;
    }

    /** Whether every version is read, rather than the latest of each column. */
    boolean allVersions() {
        return allVersions;
    }

    /** The filter for single rows. */
    RowFilter filter() {
        if (onlySuspects && condition == null) {
            return new RowFilter.Suspects(suspectStarts);
        }
        if (onlySuspects) {
            return new RowFilter.Tree(Condition.and(suspects(), condition));
        }
        return condition == null ? RowFilter.ALL : new RowFilter.Tree(condition);
    }

    private Condition suspects() {
        return Condition.or(Condition.isNull(Condition.Field.COMMIT),
                Condition.in(Condition.Field.START, suspectStarts));
    }

    /** Whether a filter looks at {@code replaced_ts}. */
    boolean asksReplaced() {
        return asksReplaced;
    }

    /** Whether nothing can pass. */
    boolean isEmpty() {
        return from >= to || rows != null && rows.isEmpty() || families != null && families.isEmpty()
                || qualifiers != null && qualifiers.isEmpty()
                || stop.length > 0 && Bytes.compareTo(start, stop) >= 0;
    }

    /** Takes the predicate over (true), or leaves it to Spark. */
    boolean take(Predicate predicate) {
        if (takeKey(predicate)) {
            return true;
        }
        if (view == View.AS_OF) {
            return false; // a read point shows cells of all timestamps; which of its cells are wanted Spark can say
        }
        if (takeSuspects(predicate)) {
            return true;
        }
        boolean[] replaced = new boolean[1];
        Condition taken = condition(predicate, replaced);
        if (taken == null) {
            return false;
        }
        boolean timeSaysIt = narrowTime(predicate);
        if (!timeSaysIt) {
            condition = condition == null ? taken : Condition.and(condition, taken);
            asksReplaced |= replaced[0];
        }
        return true;
    }

    // Keys: row, family, qualifier.

    private boolean takeKey(Predicate predicate) {
        Expression[] children = predicate.children();
        if (children.length == 0) {
            return false;
        }
        boolean mirrored = children.length == 2 && column(children[0]) == null;
        String column = column(children[mirrored ? 1 : 0]);
        if (column == null) {
            return false;
        }
        if (predicate.name().equals("IS_NOT_NULL")
                && List.of("row", "family", "qualifier", "timestamp", "start_ts").contains(column)) {
            // Spark adds it to every comparison. Cells have them all; rows without a cell pass such filters.
            return true;
        }
        if (!List.of("row", "family", "qualifier").contains(column)
                || column.equals("qualifier") && view != View.CELLS) {
            return false;
        }
        List<byte[]> values = new ArrayList<>();
        for (int i = 0; i < children.length; i++) {
            if (i == (mirrored ? 1 : 0)) {
                continue;
            }
            if (!(children[i] instanceof Literal<?> literal) || !(literal.value() instanceof byte[] bytes)) {
                return false;
            }
            values.add(bytes);
        }
        String name = predicate.name();
        if (name.equals("IN") && !mirrored || name.equals("=") || name.equals("<=>")) {
            switch (column) {
                case "row":
                    values.removeIf(value -> value.length == 0); // no row's key, and to a scan the table's end
                    rows = intersect(rows, values);
                    return true;
                case "family":
                    families = intersect(families, values);
                    return true;
                default:
                    qualifiers = intersect(qualifiers, values);
                    return true;
            }
        }
        return column.equals("row") && values.size() == 1
                && narrowRows(mirrored ? mirror(name) : name, values.get(0));
    }

    private static String mirror(String name) {
        Condition.Comparison comparison = comparison(name);
        return comparison == null ? name : comparison.mirrored().sign;
    }

    private boolean narrowRows(String name, byte[] value) {
        switch (name) {
            case ">=":
                atLeast(value);
                return true;
            case ">":
                atLeast(next(value));
                return true;
            case "<":
                below(value);
                return true;
            case "<=":
                below(next(value));
                return true;
            default:
                return false;
        }
    }

    private void atLeast(byte[] value) {
        if (Bytes.compareTo(value, start) > 0) {
            start = value;
        }
    }

    private void below(byte[] value) {
        if (value.length == 0) {
            rows = new TreeSet<>(ORDER);
        } else if (stop.length == 0 || Bytes.compareTo(value, stop) < 0) {
            stop = value;
        }
    }

    /** The row that follows directly. */
    private static byte[] next(byte[] row) {
        return Arrays.copyOf(row, row.length + 1);
    }

    private static TreeSet<byte[]> intersect(TreeSet<byte[]> before, Collection<byte[]> values) {
        TreeSet<byte[]> set = new TreeSet<>(ORDER);
        set.addAll(values);
        if (before != null) {
            set.retainAll(before);
        }
        return set;
    }

    /** The wanted rows within [start, stop), or null if no rows are named. */
    List<byte[]> rowsWithin(byte[] first, byte[] end) {
        if (rows == null) {
            return null;
        }
        List<byte[]> within = new ArrayList<>();
        for (byte[] row : rows) {
            if (Bytes.compareTo(row, first) >= 0 && (end.length == 0 || Bytes.compareTo(row, end) < 0)) {
                within.add(row);
            }
        }
        return within;
    }

    // Timestamps.

    /** The shape that the cleanup asks for has a filter of its own. */
    private boolean takeSuspects(Predicate predicate) {
        if (onlySuspects || view != View.VERSIONS) {
            return false;
        }
        if (isNullOfCommit(predicate)) {
            suspectStarts = new LongSet();
            onlySuspects = true;
            return true;
        }
        if (!predicate.name().equals("OR")) {
            return false;
        }
        Expression left = predicate.children()[0];
        Expression right = predicate.children()[1];
        if (!isNullOfCommit(left)) {
            Expression swap = left;
            left = right;
            right = swap;
        }
        LongSet starts = isNullOfCommit(left) ? startsIn(right) : null;
        if (starts == null) {
            return false;
        }
        suspectStarts = starts;
        onlySuspects = true;
        return true;
    }

    private static boolean isNullOfCommit(Expression expression) {
        return expression instanceof Predicate predicate && predicate.name().equals("IS_NULL")
                && "commit_ts".equals(column(predicate.children()[0]));
    }

    private static LongSet startsIn(Expression expression) {
        if (!(expression instanceof Predicate predicate) || predicate.children().length == 0
                || !"start_ts".equals(column(predicate.children()[0]))
                || !predicate.name().equals("IN") && !predicate.name().equals("=")) {
            return null;
        }
        return longs(predicate.children());
    }

    /** The numbers behind the first child; null unless all are numbers. */
    private static LongSet longs(Expression[] children) {
        long[] values = new long[children.length - 1];
        for (int i = 1; i < children.length; i++) {
            Long value = number(children[i]);
            if (value == null) {
                return null;
            }
            values[i - 1] = value;
        }
        return new LongSet(values);
    }

    private Condition condition(Expression expression, boolean[] replaced) {
        if (!(expression instanceof Predicate predicate)) {
            return null;
        }
        Expression[] children = predicate.children();
        switch (predicate.name()) {
            case "AND":
            case "OR": {
                Condition left = condition(children[0], replaced);
                Condition right = condition(children[1], replaced);
                if (left == null || right == null) {
                    return null;
                }
                return predicate.name().equals("AND") ? Condition.and(left, right) : Condition.or(left, right);
            }
            case "NOT": {
                Condition inner = condition(children[0], replaced);
                return inner == null ? null : Condition.not(inner);
            }
            case "IS_NULL":
            case "IS_NOT_NULL": {
                Condition.Field field = field(children[0], replaced);
                if (field == null) {
                    return null;
                }
                Condition isNull = Condition.isNull(field);
                return predicate.name().equals("IS_NULL") ? isNull : Condition.not(isNull);
            }
            case "IN": {
                Condition.Field field = field(children[0], replaced);
                LongSet set = field == null ? null : longs(children);
                return set == null ? null : Condition.in(field, set);
            }
            default:
                return comparison(predicate, replaced);
        }
    }

    private Condition comparison(Predicate predicate, boolean[] replaced) {
        Condition.Comparison comparison = comparison(predicate.name());
        Expression[] children = predicate.children();
        if (comparison == null || children.length != 2) {
            return null;
        }
        Condition.Field left = field(children[0], replaced);
        Condition.Field right = field(children[1], replaced);
        if (left != null && right != null) {
            return Condition.compare(left, comparison, right);
        }
        Long constant = number(left == null ? children[0] : children[1]);
        if (constant == null || left == null && right == null) {
            return null;
        }
        return left != null ? Condition.compare(left, comparison, constant)
                : Condition.compare(right, comparison.mirrored(), constant);
    }

    private static Condition.Comparison comparison(String name) {
        for (Condition.Comparison comparison : Condition.Comparison.values()) {
            if (comparison.sign.equals(name)) {
                return comparison;
            }
        }
        return null;
    }

    /** Narrows the time range by a predicate that has to hold; true if the time range says all that it says. */
    private boolean narrowTime(Predicate predicate) {
        Expression[] children = predicate.children();
        if (predicate.name().equals("IN")) {
            String column = column(children[0]);
            LongSet set = longs(children);
            if (set != null && !set.isEmpty()
                    && ("start_ts".equals(column) || "timestamp".equals(column))) {
                long[] values = set.values();
                narrowTime(column.equals("start_ts"), Condition.Comparison.GREATER_OR_EQUAL, values[0]);
                narrowTime(column.equals("start_ts"), Condition.Comparison.LESS_OR_EQUAL, values[values.length - 1]);
            }
            return false;
        }
        Condition.Comparison comparison = comparison(predicate.name());
        if (comparison == null || comparison == Condition.Comparison.NOT_EQUAL || children.length != 2) {
            return false;
        }
        boolean mirrored = column(children[0]) == null;
        String column = column(children[mirrored ? 1 : 0]);
        Long constant = number(children[mirrored ? 0 : 1]);
        if (constant == null || !"timestamp".equals(column) && !"start_ts".equals(column)) {
            return false;
        }
        narrowTime(column.equals("start_ts"), mirrored ? comparison.mirrored() : comparison, constant);
        return allVersions;
    }

    /** A start timestamp is its timestamp rounded down, so its bounds are rounded to match. */
    private void narrowTime(boolean start, Condition.Comparison comparison, long constant) {
        switch (comparison) {
            case GREATER_OR_EQUAL:
                from = Math.max(from, start ? roundUp(constant) : constant);
                break;
            case GREATER:
                from = Math.max(from, start ? above(constant) : constant == Long.MAX_VALUE ? constant : constant + 1);
                break;
            case LESS:
                before(start ? roundUp(constant) : constant);
                break;
            case LESS_OR_EQUAL:
                before(start ? above(constant) : constant == Long.MAX_VALUE ? constant : constant + 1);
                break;
            case EQUAL:
                narrowTime(start, Condition.Comparison.GREATER_OR_EQUAL, constant);
                narrowTime(start, Condition.Comparison.LESS_OR_EQUAL, constant);
                break;
            default:
                break;
        }
    }

    private void before(long bound) {
        // Where only the latest version is shown, an upper bound for HBase would bring older versions to light.
        if (allVersions) {
            to = Math.min(to, bound);
        }
    }

    private static long roundUp(long value) {
        long down = Omid.start(value);
        return down == value ? value : above(value);
    }

    /** The first base timestamp above the value. */
    private static long above(long value) {
        long down = Omid.start(value);
        return down > Long.MAX_VALUE - Omid.CHECKPOINTS ? Long.MAX_VALUE : down + Omid.CHECKPOINTS;
    }

    private Condition.Field field(Expression expression, boolean[] replaced) {
        String column = column(expression);
        if (column == null) {
            return null;
        }
        if (column.equals("timestamp")) {
            return Condition.Field.TIMESTAMP;
        }
        if (view != View.VERSIONS) {
            return null;
        }
        switch (column) {
            case "start_ts":
                return Condition.Field.START;
            case "commit_ts":
                return Condition.Field.COMMIT;
            case "replaced_ts":
                replaced[0] = true;
                return Condition.Field.REPLACED;
            default:
                return null;
        }
    }

    private static String column(Expression expression) {
        return expression instanceof NamedReference reference && reference.fieldNames().length == 1
                ? reference.fieldNames()[0] : null;
    }

    private static Long number(Expression expression) {
        return expression instanceof Literal<?> literal && literal.value() instanceof Long value ? value : null;
    }

    @Override
    public String toString() {
        StringBuilder text = new StringBuilder();
        if (start.length > 0 || stop.length > 0) {
            text.append(", rows [").append(Bytes.toStringBinary(start)).append(", ")
                    .append(Bytes.toStringBinary(stop)).append(')');
        }
        if (rows != null) {
            text.append(", ").append(rows.size()).append(" rows");
        }
        if (families != null) {
            text.append(", ").append(families.size()).append(" families");
        }
        if (qualifiers != null) {
            text.append(", ").append(qualifiers.size()).append(" qualifiers");
        }
        if (from > 0 || to < Long.MAX_VALUE) {
            text.append(", timestamps [").append(from).append(", ").append(to).append(')');
        }
        if (onlySuspects) {
            text.append(", commit_ts IS NULL OR start_ts IN ").append(suspectStarts);
        }
        if (condition != null) {
            text.append(", filtered");
        }
        return text.toString();
    }
}
