package lowtide.connector;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.connector.read.InputPartition;

/**
 * Pieces that one task reads, one after the other. Of many small tables each region would else be a task, which Spark
 * takes longer to start than HBase takes to say that there is nothing new.
 */
record Bundle(Piece[] pieces) implements InputPartition {
    private static final int PIECES = 16;

    /**
     * Bundles of pieces that lie on the same server; together they are all of the pieces.
     *
     * @param mostBytes of their files in a bundle; a larger piece is one by itself
     */
    static Bundle[] of(List<Piece> pieces, long mostBytes) {
        Map<String, List<Piece>> open = new TreeMap<>();
        Map<String, Long> bytes = new TreeMap<>();
        List<Bundle> bundles = new ArrayList<>();
        for (Piece piece : pieces) {
            String server = piece.server() == null ? "" : piece.server();
            List<Piece> some = open.computeIfAbsent(server, any -> new ArrayList<>());
            if (!some.isEmpty() && (some.size() == PIECES || bytes.get(server) + piece.bytes() > mostBytes)) {
                bundles.add(new Bundle(some.toArray(new Piece[0])));
                some.clear();
            }
            bytes.put(server, (some.isEmpty() ? 0 : bytes.get(server)) + piece.bytes());
            some.add(piece);
        }
        open.values().stream().filter(some -> !some.isEmpty())
                .forEach(some -> bundles.add(new Bundle(some.toArray(new Piece[0]))));
        return bundles.toArray(new Bundle[0]);
    }

    @Override
    public String[] preferredLocations() {
        return pieces[0].preferredLocations();
    }
}
