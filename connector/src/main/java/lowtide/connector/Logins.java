package lowtide.connector;

import java.io.IOException;
import java.util.Base64;
import java.util.TreeSet;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.token.Token;
import org.apache.hadoop.security.token.TokenIdentifier;

/** What the current user of this JVM, in a task the one whom Spark set, is let in by: tickets and tokens. */
public final class Logins {
    /** HBase's: its servers let in who has one, without Kerberos. */
    static final Text HBASE = new Text("HBASE_AUTH_TOKEN");

    private Logins() {
    }

    /**
     * As whom this JVM logged in to Kerberos, by a keytab or with a ticket that is still good; empty: it did not. Where
     * Hadoop knows nothing of Kerberos there is no login either, which {@code security} tells apart.
     */
    public static String ticket() throws IOException {
        UserGroupInformation user = UserGroupInformation.getCurrentUser();
        return user.hasKerberosCredentials() ? user.getUserName() : "";
    }

    /** Whether Hadoop in this JVM logs in by Kerberos, as {@code core-site.xml} says. */
    public static boolean security() {
        return UserGroupInformation.isSecurityEnabled();
    }

    /**
     * For a task to tell: {@code Kerberos}, if the user has a ticket, and the kinds of his tokens, with commas between.
     * Never what is in them.
     */
    public static String held() throws IOException {
        UserGroupInformation user = UserGroupInformation.getCurrentUser();
        TreeSet<String> kinds = new TreeSet<>();
        if (user.hasKerberosCredentials()) {
            kinds.add("Kerberos");
        }
        for (Token<? extends TokenIdentifier> token : user.getTokens()) {
            kinds.add(token.getKind().toString());
        }
        return String.join(",", kinds);
    }

    /** Which token for HBase the user has now, as a text that another one does not have; empty: none. It is no secret. */
    static String token() throws IOException {
        for (Token<? extends TokenIdentifier> token : UserGroupInformation.getCurrentUser().getTokens()) {
            if (HBASE.equals(token.getKind())) {
                return Base64.getEncoder().encodeToString(token.getIdentifier());
            }
        }
        return "";
    }
}
