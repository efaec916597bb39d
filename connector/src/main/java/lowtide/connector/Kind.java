package lowtide.connector;

import java.util.Locale;
import org.apache.spark.unsafe.types.UTF8String;

/** What a row of the views {@code versions} and {@code cells} stands for. */
enum Kind {
    PUT,
    TOMBSTONE,
    FAMILY_TOMBSTONE,
    SHADOW,
    UNKNOWN,
    END_OF_RANGE,
    DELETE,
    DELETE_COLUMN,
    DELETE_FAMILY,
    DELETE_FAMILY_VERSION;

    /** The name that the column {@code kind} shows. */
    final UTF8String label = UTF8String.fromString(name().toLowerCase(Locale.ROOT));
}
