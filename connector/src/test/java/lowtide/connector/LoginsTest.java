package lowtide.connector;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.nio.charset.StandardCharsets;
import java.security.PrivilegedExceptionAction;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.token.Token;
import org.apache.hadoop.security.token.TokenIdentifier;
import org.junit.jupiter.api.Test;

/** What a user is let in by, as a task tells it, and which token it is. */
class LoginsTest {
    private final UserGroupInformation user = UserGroupInformation.createRemoteUser("ann");

    private void give(String kind, String identifier) {
        byte[] bytes = identifier.getBytes(StandardCharsets.UTF_8);
        byte[] password = "secret".getBytes(StandardCharsets.UTF_8);
        user.addToken(new Token<TokenIdentifier>(bytes, password, new Text(kind), new Text("a cluster")));
    }

    private <T> T asUser(PrivilegedExceptionAction<T> asked) throws Exception {
        return user.doAs(asked);
    }

    /** Kinds alone: of what is in a token nothing is told. */
    @Test
    void kindsOfTokensAreTold() throws Exception {
        assertEquals("", asUser(Logins::held));
        give("HBASE_AUTH_TOKEN", "ann's");
        assertEquals("HBASE_AUTH_TOKEN", asUser(Logins::held));
    }

    /** A connection of HBase's client is made anew for a token that Spark has put in the place of another. */
    @Test
    void aTokenThatIsReplacedIsAnother() throws Exception {
        assertEquals("", asUser(Logins::token));
        give("HDFS_DELEGATION_TOKEN", "of another service");
        assertEquals("", asUser(Logins::token));
        give("HBASE_AUTH_TOKEN", "the first");
        String first = asUser(Logins::token);
        give("HBASE_AUTH_TOKEN", "the second");
        assertNotEquals("", first);
        assertNotEquals(first, asUser(Logins::token));
    }
}
