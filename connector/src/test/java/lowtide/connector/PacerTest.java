package lowtide.connector;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class PacerTest {
    private final List<Long> passed = new ArrayList<>();
    private final Pacer pacer = new Pacer(2000, nanos -> {
        passed.add(TimeUnit.NANOSECONDS.toMicros(nanos));
        return 0;
    });

    private static void nobody() {
    }

    /** A portion is paid for before it is asked for; what came beyond it before the next; what was not used is given back. */
    @Test
    void everyCellIsPaidForOnce() throws IOException {
        pacer.beforeRead(PacerTest::nobody);
        pacer.read(40);
        pacer.beforeRead(PacerTest::nobody); // 60 of the 100 are left, and the answer may have 100
        pacer.beforeRead(PacerTest::nobody);
        pacer.read(260);
        pacer.beforeRead(PacerTest::nobody);
        pacer.read(10);
        pacer.end();
        pacer.end();
        assertEquals(List.of(50_000L, 20_000L, 130_000L, -45_000L), passed);
    }

    /** A task that read beyond what it paid for leaves the wait to the next. */
    @Test
    void whatIsOwedIsPaidAtTheEnd() throws IOException {
        pacer.beforeRead(PacerTest::nobody);
        pacer.read(1100);
        pacer.end();
        assertEquals(List.of(50_000L, 500_000L), passed);
    }

    /** Mutations are paid for as many as are sent. */
    @Test
    void everyMutationIsPaidFor() throws IOException {
        assertEquals(0, pacer.beforeWrite(70));
        assertEquals(List.of(35_000L), passed);
    }

    /** Portions are small, so that others are served in between, and never nothing; without a rate all is as it was. */
    @Test
    void portionsAreSmall() throws IOException {
        assertEquals(100, pacer.portion(1000));
        assertEquals(7, pacer.portion(7));
        assertEquals(4000, pacer.bytes(2L << 20));
        Pacer slow = new Pacer(1, nanos -> 0);
        assertEquals(1, slow.portion(1000));
        assertEquals(40, slow.bytes(2L << 20));
        Pacer free = new Pacer(0, nanos -> {
            throw new IOException("nobody asks");
        });
        assertFalse(free.limits());
        assertEquals(1000, free.portion(1000));
        assertEquals(2L << 20, free.bytes(2L << 20));
        free.beforeRead(PacerTest::nobody);
        free.read(5);
        free.end();
        assertEquals(0, free.beforeWrite(5));
    }

    /** Reads and writes of any number of tasks that name one gate are no faster than the rate; a slow machine is slower. */
    @Test
    void tasksShareTheirGate() throws Exception {
        List<Thread> tasks = new ArrayList<>();
        List<Throwable> failures = Collections.synchronizedList(new ArrayList<>());
        long begin = System.nanoTime();
        for (int task = 0; task < 4; task++) {
            Thread thread = new Thread(() -> {
                try {
                    Pacer mine = new Pacer(10_000, nanos -> Gates.pass("tasksShareTheirGate", nanos));
                    for (int request = 0; request < 5; request++) {
                        mine.beforeWrite(500);
                    }
                } catch (IOException e) {
                    failures.add(e);
                }
            });
            thread.start();
            tasks.add(thread);
        }
        for (Thread task : tasks) {
            task.join();
        }
        assertEquals(List.of(), failures);
        assertTrue(System.nanoTime() - begin >= 950_000_000L, "10,000 mutations, the last 500 let in, take 0.95 s");
        assertTrue(Gates.waited("tasksShareTheirGate") > 0.5);
        assertEquals(0, Gates.waited("another"));
    }

    /** A task that is interrupted while it waits ends at once. */
    @Test
    void aTaskThatIsEndedDoesNotWaitOn() {
        Pacer slow = new Pacer(1, nanos -> TimeUnit.HOURS.toNanos(1));
        Thread.currentThread().interrupt();
        assertThrows(InterruptedIOException.class, () -> slow.beforeWrite(1));
        Thread.interrupted();
    }

    /** A scanner whose turn is far off is kept alive meanwhile. */
    @Test
    void aScannerIsKeptAlive() throws IOException {
        List<String> told = new ArrayList<>();
        Pacer slow = new Pacer(1000, nanos -> TimeUnit.MILLISECONDS.toNanos(5_050));
        slow.beforeRead(() -> told.add("alive"));
        assertEquals(List.of("alive"), told);
    }
}
