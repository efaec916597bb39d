package lowtide.connector;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Small pieces are read by one task, each of them once, and none far from its server. */
class BundleTest {
    private static Piece piece(int number, long bytes, String server) {
        return new Piece("t" + number, "r" + number, new byte[0], new byte[0], 0, 1, new byte[0][], bytes, server, null);
    }

    /** All pieces are there once, whatever their sizes and servers. */
    @Test
    void nothingIsLeftOutAndNothingIsReadTwice() {
        List<Piece> pieces = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            pieces.add(piece(i, (long) i << 20, i % 7 == 0 ? null : "server" + i % 3));
        }
        List<Piece> bundled = Arrays.stream(Bundle.of(pieces, 64 << 20)).flatMap(b -> Arrays.stream(b.pieces())).toList();
        assertEquals(pieces.size(), bundled.size());
        assertEquals(new HashSet<>(pieces), new HashSet<>(bundled));
    }

    /** A task that reads several regions finds all of them on one machine. */
    @Test
    void aBundleIsOfOneServer() {
        List<Piece> pieces = new ArrayList<>();
        for (int i = 0; i < 10; i++) {
            pieces.add(piece(i, 0, "server" + i % 2));
        }
        Bundle[] bundles = Bundle.of(pieces, 64 << 20);
        assertEquals(2, bundles.length);
        for (Bundle bundle : bundles) {
            assertEquals(1, Arrays.stream(bundle.pieces()).map(Piece::server).distinct().count());
            assertArrayEquals(bundle.pieces()[0].preferredLocations(), bundle.preferredLocations());
        }
    }

    /** What takes long is shared out among tasks: bundles are small, and a large piece is one by itself. */
    @Test
    void bundlesAreSmall() {
        List<Piece> pieces = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            pieces.add(piece(i, i == 20 ? 1L << 30 : 1L << 20, "server"));
        }
        for (Bundle bundle : Bundle.of(pieces, 64 << 20)) {
            long bytes = Arrays.stream(bundle.pieces()).mapToLong(Piece::bytes).sum();
            assertTrue(bundle.pieces().length <= 16);
            assertTrue(bundle.pieces().length == 1 || bytes <= 64 << 20, bytes + " bytes");
        }
    }
}
