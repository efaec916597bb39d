package lowtide.connector;

import java.io.Closeable;
import java.io.IOException;

/** The rows of a piece, one at a time. What the methods give is valid until the next {@link #next}. */
interface RowReader extends Closeable {
    /** Moves to the next row that passes the filters; false at the end. */
    boolean next() throws IOException;

    Kind kind();

    byte[] row();

    byte[] family();

    byte[] qualifier();

    /** Null where values were not asked for. */
    byte[] value();

    long timestamp();

    /** {@link Omid#NONE} for null. */
    default long commit() {
        return Omid.NONE;
    }

    /** {@link Omid#NONE} for null. */
    default long replaced() {
        return Omid.NONE;
    }

    /** Null unless the kind is unknown. */
    default String problem() {
        return null;
    }

    /** A piece in which nothing can pass. */
    RowReader NOTHING = new RowReader() {
        @Override
        public boolean next() {
            return false;
        }

        @Override
        public Kind kind() {
            throw new IllegalStateException();
        }

        @Override
        public byte[] row() {
            throw new IllegalStateException();
        }

        @Override
        public byte[] family() {
            throw new IllegalStateException();
        }

        @Override
        public byte[] qualifier() {
            throw new IllegalStateException();
        }

        @Override
        public byte[] value() {
            throw new IllegalStateException();
        }

        @Override
        public long timestamp() {
            throw new IllegalStateException();
        }

        @Override
        public void close() {
        }
    };
}
