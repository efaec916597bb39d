package lowtide.store;

import org.apache.hadoop.hbase.security.access.AccessController;

/**
 * Checks permissions as HBase's own class does, under a name that HBase's clients do not know: what another product that
 * checks them in its place looks like to them. For tests.
 */
public final class AnotherController extends AccessController {}
