package lowtide.connector;

import static lowtide.connector.Records.FAMILY;
import static lowtide.connector.Records.INTENDED;
import static lowtide.connector.Records.VALUE;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.CheckAndMutateResult;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;

/** Renewals of a hold, on a state table of one cell. */
class HoldTest {
    /**
     * What comes of the next check that holds: its answer, a refusal because it is repeated, or an error; it is done
     * all the same.
     */
    private enum Answer { GIVEN, REPEATED, LOST, BROKEN }

    private String mark;
    private byte[] cell = Bytes.toBytes("taken");
    private Answer answer = Answer.GIVEN;
    /** How far HBase's clock is ahead of this machine's. */
    private long ahead;

    private final Hold hold = new Hold(new Options(Map.of("table", "orders", "asOf", "1000", "hold", "true",
            "holdMaxAgeMillis", String.valueOf(TimeUnit.DAYS.toMillis(2)))), 1000) {
        @Override
        Table table() {
            return (Table) Proxy.newProxyInstance(HoldTest.class.getClassLoader(), new Class<?>[] {Table.class},
                    (proxy, method, arguments) -> switch (method.getName()) {
                        case "checkAndMutate" -> new CheckAndMutateResult(checked((CheckAndMutate) arguments[0]), null);
                        case "get" -> ((Get) arguments[0]).getFamilyMap().get(FAMILY).contains(INTENDED) ? history()
                                : stands();
                        default -> null;
                    });
        }

        @Override
        long now() {
            return System.currentTimeMillis() + ahead;
        }
    };

    {
        hold.taken = System.currentTimeMillis();
    }

    private boolean checked(CheckAndMutate check) throws IOException {
        if (!Arrays.equals(cell, check.getValue())) {
            return false;
        }
        Put put = (Put) check.getAction();
        cell = CellUtil.cloneValue(put.get(FAMILY, put.has(FAMILY, INTENDED) ? INTENDED : VALUE).get(0));
        switch (answer) {
            case LOST:
                throw new IOException("no answer");
            case BROKEN:
                throw new IllegalStateException("closed");
            default:
                return answer == Answer.GIVEN;
        }
    }

    private Result stands() {
        return cell == null ? Result.EMPTY_RESULT
                : Result.create(List.<Cell>of(new KeyValue(Bytes.toBytes("hold"), FAMILY, VALUE, 1, cell)));
    }

    /** The row of the mark: what is intended is the one cell. */
    private Result history() {
        byte[] row = Bytes.toBytes("history");
        List<Cell> cells = new ArrayList<>(List.of(new KeyValue(row, FAMILY, INTENDED, 1, cell)));
        if (mark != null) {
            cells.add(new KeyValue(row, FAMILY, Records.MARK, 1, Bytes.toBytes(mark)));
        }
        return Result.create(cells);
    }

    private void announced(long mark, long minutesAgo) {
        long at = System.currentTimeMillis() - TimeUnit.MINUTES.toMillis(minutesAgo);
        cell = Bytes.toBytes("{\"at\":" + at + ",\"mark\":" + mark + ",\"removing\":{\"gc0\":5},\"run\":\"gc\"}");
    }

    /**
     * A mark that a run has announced refuses a hold below it, until the run must be taken for dead: then the hold
     * takes its claim.
     */
    @Test
    void overtakesADeadAnnouncement() throws IOException {
        announced(2049, 59);
        byte[] before = cell;
        String text = assertThrows(IllegalArgumentException.class, hold::refuseIntended).getMessage();
        assertTrue(text.contains("is about to remove the history of orders before 2049"), text);
        assertArrayEquals(before, cell);
        announced(2049, 61);
        for (Answer each : List.of(Answer.GIVEN, Answer.REPEATED)) {
            announced(2049, 61);
            answer = each;
            hold.refuseIntended();
            String claim = Bytes.toString(cell);
            assertTrue(claim.contains("\"mark\":0,\"removing\":{\"gc0\":5},\"run\":\"hold read-"), claim);
        }
    }

    /** How old an announcement is HBase's clock tells, which dates it; a driver's may be hours ahead or behind. */
    @Test
    void takesAClaimByHBasesClock() throws IOException {
        ahead = TimeUnit.HOURS.toMillis(-2);
        announced(2049, 61);
        byte[] before = cell;
        assertThrows(IllegalArgumentException.class, hold::refuseIntended);
        assertArrayEquals(before, cell, "taken from a run that announced it just now");
        ahead = TimeUnit.HOURS.toMillis(2);
        announced(2049, 0);
        hold.refuseIntended();
        long at = new ObjectMapper().readTree(cell).path("at").asLong();
        assertEquals(hold.now(), at, 60_000, "dated by the driver's clock");
    }

    /** A mark that is applied refuses, however old its announcement: its run may be removing. */
    @Test
    void takesNoClaimOfAMarkThatIsApplied() {
        mark = "{\"mark\":2049}";
        announced(2049, 61);
        byte[] before = cell;
        assertThrows(IllegalArgumentException.class, hold::refuseIntended);
        assertArrayEquals(before, cell);
    }

    /** A hold at or above what is announced disturbs nobody. */
    @Test
    void leavesAnAnnouncementBelowItAlone() throws IOException {
        announced(1000, 61);
        byte[] before = cell;
        hold.refuseIntended();
        assertArrayEquals(before, cell);
    }

    private byte[] renewed(Answer next) throws InterruptedException {
        answer = next;
        Thread.sleep(2); // another expiry
        byte[] before = cell;
        hold.renew();
        assertNotEquals(Bytes.toString(before), Bytes.toString(cell), "the hold was not renewed");
        return cell;
    }

    /** A renewal of which no answer came, or the answer to its repetition, does not keep later ones from renewing. */
    @Test
    void isRenewedAfterLostAnswers() throws InterruptedException {
        hold.recorded = cell;
        for (Answer each : Answer.values()) {
            renewed(each);
            if (each == Answer.GIVEN || each == Answer.REPEATED) {
                assertArrayEquals(cell, hold.recorded);
            } else {
                hold.renew(); // is refused and learns what stands
            }
        }
        renewed(Answer.GIVEN);
    }

    /** It lasts by HBase's clock, by which history GC looks at it, and no longer than the option says. */
    @Test
    void lastsByHBasesClock() throws IOException {
        long day = TimeUnit.DAYS.toMillis(1);
        hold.recorded = cell;
        ahead = day;
        hold.renew();
        long expires = new ObjectMapper().readTree(cell).path("expires").asLong();
        assertEquals(day + Hold.LASTING_MILLIS, expires - System.currentTimeMillis(), 60_000, "by the driver's clock");
        ahead = 30 * day;
        hold.renew();
        assertEquals(hold.taken + 2 * day, new ObjectMapper().readTree(cell).path("expires").asLong());
    }

    /** A hold that was released by hand stays released. */
    @Test
    void staysReleased() {
        hold.recorded = cell;
        cell = null;
        hold.renew();
        hold.renew();
        assertArrayEquals(null, cell);
    }
}
