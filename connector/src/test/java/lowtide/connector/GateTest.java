package lowtide.connector;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.PriorityQueue;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** How a rate is divided among the tasks of a run. Times are made up: nothing waits here. */
class GateTest {
    private static final long SECOND = 1_000_000_000L;

    /** What began when, for how many of the rate's ns. */
    private record Begun(long at, long nanos) {
    }

    /** Nobody is before a lone task: it has the whole rate, from its first request on. */
    @Test
    void aLoneTaskHasTheWholeRate() {
        Gate gate = new Gate();
        long now = 7 * SECOND;
        for (int request = 0; request < 100; request++) {
            long wait = gate.pass(now, SECOND / 20);
            assertEquals(request == 0 ? 0 : SECOND / 20, wait);
            now += wait;
        }
        assertEquals(99 * SECOND / 20, gate.waited());
    }

    /** What nobody used of the rate is gone: after an hour of silence requests are as far apart as ever. */
    @Test
    void silenceIsNotMadeUpFor() {
        Gate gate = new Gate();
        gate.pass(0, SECOND);
        assertEquals(0, gate.pass(3600 * SECOND, SECOND));
        assertEquals(SECOND, gate.pass(3600 * SECOND, SECOND));
    }

    /** What was taken in vain is given back to who comes next, and to nobody twice. */
    @Test
    void whatWasTakenInVainIsGivenBack() {
        Gate gate = new Gate();
        assertEquals(0, gate.pass(-SECOND, -SECOND));
        assertEquals(0, gate.pass(0, 10 * SECOND));
        gate.pass(1, -9 * SECOND);
        assertEquals(SECOND - 1, gate.pass(1, SECOND));
        assertEquals(0, gate.pass(5 * SECOND, SECOND));
    }

    /** Several that wait at the same time count once: it is by how much longer the run may have taken. */
    @Test
    void waitingTogetherCountsOnce() {
        Gate gate = new Gate();
        for (int task = 0; task < 3; task++) {
            assertEquals(task * SECOND, gate.pass(0, SECOND));
        }
        assertEquals(2 * SECOND, gate.waited());
    }

    /**
     * Whatever tasks come and go, how much each asks for and at which rate: in any window what begins is at most the
     * window, and one request; and no time is lost while somebody waits.
     */
    @Test
    void noWindowHasMoreThanTheRate() {
        for (int seed = 0; seed < 200; seed++) {
            Random random = new Random(seed);
            Gate gate = new Gate();
            PriorityQueue<long[]> tasks = new PriorityQueue<>(Comparator.comparingLong(task -> task[0]));
            for (int task = random.nextInt(30); task >= 0; task--) {
                tasks.add(new long[] {(long) (random.nextDouble() * 5 * SECOND), 1 + random.nextInt(20)});
            }
            List<Begun> begun = new ArrayList<>();
            long most = 0;
            while (!tasks.isEmpty()) {
                long[] task = tasks.poll();
                long nanos = 1 + (long) (random.nextDouble() * SECOND / 10);
                long wait = gate.pass(task[0], nanos);
                assertTrue(wait >= 0);
                begun.add(new Begun(task[0] + wait, nanos));
                most = Math.max(most, nanos);
                if (--task[1] > 0) {
                    long works = random.nextBoolean() ? 0 : (long) (random.nextDouble() * SECOND);
                    tasks.add(new long[] {task[0] + wait + works, task[1]});
                }
            }
            begun.sort(Comparator.comparingLong(Begun::at));
            for (int first = 0; first < begun.size(); first++) {
                long sum = 0;
                for (int last = first; last < begun.size(); last++) {
                    sum += begun.get(last).nanos();
                    long window = begun.get(last).at() - begun.get(first).at();
                    assertTrue(sum <= window + most, "seed " + seed + ": " + sum + " ns of the rate in " + window);
                }
            }
        }
    }
}
