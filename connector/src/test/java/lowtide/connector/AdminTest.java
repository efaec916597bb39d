package lowtide.connector;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.reflect.Proxy;
import java.net.ConnectException;
import java.util.List;
import org.apache.hadoop.hbase.NotServingRegionException;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.TableNotFoundException;
import org.apache.hadoop.hbase.client.CompactionState;
import org.apache.hadoop.hbase.ipc.CallTimeoutException;
import org.junit.jupiter.api.Test;

/** What a wait for a compaction goes by. */
class AdminTest {
    /** A major compaction that is newer, or that there was nothing for, ends the wait. */
    @Test
    void aRegionWithoutFilesIsNotWaitedFor() {
        assertTrue(Admin.newer(2L, 1L));
        assertFalse(Admin.newer(1L, 1L));
        assertTrue(Admin.newer(Admin.WITHOUT_FILES, Admin.WITHOUT_FILES), "it never had files");
        assertTrue(Admin.newer(Admin.WITHOUT_FILES, 1L), "all it had is gone");
        assertTrue(Admin.newer(0L, Admin.WITHOUT_FILES), "its first file came after the compaction was asked for");
        assertTrue(Admin.newer(0L, null), "it came after the compaction was asked for");
        assertFalse(Admin.newer(null, 1L), "no server has it open");
    }

    /** A server that does not answer, or has not got the region, has not said that no compaction runs. */
    @Test
    void onlyAServerTellsThatNothingIsCompacted() {
        assertEquals(CompactionState.NONE, Admin.compacting(admin(CompactionState.NONE), "r"));
        assertEquals(CompactionState.MAJOR, Admin.compacting(admin(CompactionState.MAJOR), "r"));
        for (Exception each : List.of(new CallTimeoutException("too late"), new NotServingRegionException("moved"),
                new IllegalArgumentException("Invalid region"), new NullPointerException("response is null"))) {
            assertNull(Admin.compacting(admin(each), "r"), each.toString());
        }
    }

    /** The same of a table, but that one that is gone is not waited for. */
    @Test
    void onlyItsServersTellThatNothingOfATableIsCompacted() throws IOException {
        TableName table = TableName.valueOf("t");
        assertEquals(CompactionState.NONE, Admin.compacting(admin(CompactionState.NONE), table));
        for (Exception each : List.of(new ConnectException("refused"), new NullPointerException("response is null"))) {
            assertNull(Admin.compacting(admin(each), table), each.toString());
        }
        assertThrows(TableNotFoundException.class,
                () -> Admin.compacting(admin(new TableNotFoundException("t")), table));
    }

    /** A server that cannot be asked is asked later; what no later try would change is said at once. */
    @Test
    void aServerThatDoesNotHearIsAskedAgain() throws IOException {
        assertTrue(Admin.heard(() -> { }));
        assertFalse(Admin.heard(() -> {
            throw new ConnectException("refused");
        }));
        assertThrows(TableNotFoundException.class, () -> Admin.heard(() -> {
            throw new TableNotFoundException("t");
        }));
    }

    private static org.apache.hadoop.hbase.client.Admin admin(Object answer) {
        return (org.apache.hadoop.hbase.client.Admin) Proxy.newProxyInstance(AdminTest.class.getClassLoader(),
                new Class<?>[] {org.apache.hadoop.hbase.client.Admin.class}, (proxy, method, arguments) -> {
                    if (answer instanceof Exception e) {
                        throw e;
                    }
                    return answer;
                });
    }
}
