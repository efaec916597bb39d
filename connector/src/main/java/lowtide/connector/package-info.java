/**
 * The Spark data source {@code lowtide}. One package on purpose: but for the eleven that Spark and Python name, no
 * class is public, and nearly every one is used by one of another subject. Packages by subject would make all of them
 * public, and with them every rule about cells. So they are ordered by name, here:
 *
 * <ul>
 * <li><b>The public face.</b> {@link lowtide.connector.LowtideSource}, what Spark finds; {@link
 *     lowtide.connector.Admin}, {@link lowtide.connector.Rows}, {@link lowtide.connector.GatewayCalls},
 *     {@link lowtide.connector.Cluster}, {@link lowtide.connector.Catalog} and {@link lowtide.connector.Contract}, what
 *     Python calls; {@link lowtide.connector.Metrics}, made by Spark by name.
 * <li><b>Spark's side of a read.</b> {@code Options}, {@code View}, {@code LowtideTable}; {@code CellScanBuilder},
 *     {@code CellScan}, {@code CatalogScan}; {@code Pushdown}, {@code Condition}, {@code LongSet}, {@code RowFilter};
 *     {@code Planner}, {@code Piece}, {@code Bundle}, {@code PieceReaderFactory}, {@code PieceReader}, {@code BundleReader}.
 * <li><b>HBase.</b> {@code Logins}, {@code Connections}, {@code Tables}, {@code Pause}; what this user may read of it: {@code
 *     Rights}; where cells come from: {@code CellStore} and {@code CellSource}, of a live table {@code RpcStore} and
 *     {@code NewestFirst}, of files {@code FileStore}; {@code RestoredFiles}, the files of an HBase snapshot in a
 *     folder of their own, one of {@code ScratchFolders}; rows that cut a read: {@code RegionFiles}, {@code TableProbe}.
 * <li><b>Rates.</b> {@code Pacer}, of a task that reads or writes; {@code Gate}, which all of a run pass; {@link
 *     lowtide.connector.Gates}, those of the driver, and {@link lowtide.connector.PacePlugin}, the way to them.
 * <li><b>Omid's cells.</b> {@code Omid}, their shape; {@code Kind}; {@code RowReader} and {@code ShownRow}, the row
 *     that is shown; {@code PlainReader}, cells as they are; {@code VersionReader} and {@code WideFamily}, cells with
 *     their shadow cells; {@code CellTable}, {@code CellView}, {@code Tally}; what hides a version: {@code
 *     Hiding}, {@code Unnamed}.
 * <li><b>A read at a read point.</b> {@code AsOfRead}, one for each DataFrame; {@code AsOf}, what is known when it
 *     begins; {@code Moment} and {@code OracleClock}, which read point is meant; {@code Commits}, {@code Journal},
 *     {@code Records}, what proves and what forbids; {@code Hold}; {@code TemporaryHBaseSnapshot}, its files; {@code
 *     Endings}.
 * <li><b>Writing.</b> {@code MutationWrite}, {@code MutationWriter}, {@code Mutation}; {@code Claims}, what must
 *     stand; {@code Batches}, {@code WriteReport}; {@code Latin}, bytes on their way from Python and back.
 * </ul>
 *
 * <p>Two things are called snapshot elsewhere, and never here: an <i>HBase snapshot</i> is a table's files at a
 * moment; a <i>read point</i> is a timestamp of the oracle, below which what committed is seen.
 */
package lowtide.connector;
