package lowtide.connector;

import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;

/**
 * The row that a {@link VersionReader} stands at. What is copied of a cell is copied when it is asked for. The methods
 * that move it give true, for whoever says with that that there is a row to show.
 */
final class ShownRow {
    private final boolean withValue;
    private Kind kind;
    private byte[] qualifier;
    private Cell cell;
    private CellTable table;
    private int index;
    private long timestamp;
    private long commit;
    private long replaced;
    private String problem;

    ShownRow(boolean withValue) {
        this.withValue = withValue;
    }

    /** A data cell as it was read. */
    boolean data(Cell read, long at, long proof, long hidden) {
        return set(null, read, null, 0, at, proof, hidden);
    }

    /** A data cell that was kept. */
    boolean kept(CellTable of, int i, long proof, long hidden) {
        return set(of.kind(i), null, of, i, of.timestamp(i), proof, hidden);
    }

    /** A shadow cell without its data cell, which would have this qualifier. */
    boolean shadow(byte[] ofData, long at, long value) {
        set(Kind.SHADOW, null, null, 0, at, value, Omid.NONE);
        qualifier = ofData;
        return true;
    }

    /** A cell of an unknown form. */
    boolean unknown(Cell read, String what) {
        set(Kind.UNKNOWN, read, null, 0, read.getTimestamp(), Omid.NONE, Omid.NONE);
        problem = what;
        return true;
    }

    private boolean set(Kind of, Cell read, CellTable keptIn, int i, long at, long proof, long hidden) {
        kind = of;
        qualifier = null;
        cell = read;
        table = keptIn;
        index = i;
        timestamp = at;
        commit = proof;
        replaced = hidden;
        problem = null;
        return true;
    }

    Kind kind() {
        if (kind == null) {
            kind = Omid.kind(cell, cell.getQualifierLength());
        }
        return kind;
    }

    /** The data cell's qualifier; of an unknown cell its own. */
    byte[] qualifier() {
        if (qualifier == null) {
            qualifier = cell != null ? CellUtil.cloneQualifier(cell) : table.qualifier(index);
        }
        return qualifier;
    }

    /** The value of a data cell or an unknown cell; null for a shadow cell, and where values were not asked for. */
    byte[] value() {
        if (!withValue || kind == Kind.SHADOW) {
            return null;
        }
        return cell != null ? CellUtil.cloneValue(cell) : table.value(index);
    }

    long timestamp() {
        return timestamp;
    }

    /** The commit timestamp, or {@link Omid#NONE}. */
    long commit() {
        return commit;
    }

    /** The commit timestamp that hides the version, or {@link Omid#NONE}. */
    long replaced() {
        return replaced;
    }

    String problem() {
        return problem;
    }
}
