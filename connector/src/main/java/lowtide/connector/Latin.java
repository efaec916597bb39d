package lowtide.connector;

import java.nio.charset.StandardCharsets;

/** Bytes as text of their values (ISO 8859-1), one character a byte: so they pass through JSON between Python and Java. */
final class Latin {
    private Latin() {
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.ISO_8859_1);
    }

    static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.ISO_8859_1);
    }
}
