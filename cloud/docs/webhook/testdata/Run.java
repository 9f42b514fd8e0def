import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;

final class Run {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split("\t", -1);
            Map<String, String> headers = new HashMap<>();
            for (int i = 3; i < parts.length; i++) {
                int at = parts[i].indexOf('=');
                headers.put(parts[i].substring(0, at), text(parts[i].substring(at + 1)));
            }
            System.out.println(Verify.verify(headers, Base64.getDecoder().decode(parts[2]), text(parts[0]), Long.parseLong(parts[1])) ? 1 : 0);
        }
    }

    private static String text(String b) {
        return new String(Base64.getDecoder().decode(b), StandardCharsets.ISO_8859_1);
    }
}
