import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Base64;
import java.util.HexFormat;
import java.util.Map;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

final class Verify {
    /**
     * Whether a request was signed with secret in the last five minutes. Names in
     * headers are in lower case; body is what was received, before any decoding.
     */
    static boolean verify(Map<String, String> headers, byte[] body, String secret, long now) throws GeneralSecurityException {
        String at = headers.getOrDefault("x-webhook-timestamp", "");
        if (!at.matches("[0-9]{1,12}") || Math.abs(now - Long.parseLong(at)) > 300) {
            return false;
        }
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(secret.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
        String id = headers.getOrDefault("x-webhook-delivery-id", "");
        String want;
        String[] given;
        if (!id.isEmpty()) { // endpoint of a provider
            mac.update((at + "\n" + id + "\n").getBytes(StandardCharsets.ISO_8859_1));
            want = Base64.getEncoder().encodeToString(mac.doFinal(body));
            given = new String[] {headers.getOrDefault("x-webhook-signature", ""), headers.getOrDefault("x-webhook-signature-next", "")};
        } else { // address of an account
            mac.update((at + ".").getBytes(StandardCharsets.ISO_8859_1));
            want = HexFormat.of().formatHex(mac.doFinal(body));
            given = headers.getOrDefault("x-webhook-signature-v2", "").split(",");
        }
        boolean ok = false;
        for (String g : given) {
            ok |= MessageDigest.isEqual(g.getBytes(StandardCharsets.ISO_8859_1), want.getBytes(StandardCharsets.ISO_8859_1));
        }
        return ok;
    }
}
