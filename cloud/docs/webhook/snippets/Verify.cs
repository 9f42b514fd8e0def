using System;
using System.Collections.Generic;
using System.Linq;
using System.Security.Cryptography;
using System.Text;

static class Webhook
{
    /// <summary>Whether a request was signed with secret in the last five minutes.
    /// Names in headers are in lower case; body is what was received, before any decoding.</summary>
    public static bool Verify(IReadOnlyDictionary<string, string> headers, byte[] body, string secret, DateTimeOffset now)
    {
        string Header(string name) => headers.TryGetValue(name, out var value) ? value : "";
        var at = Header("x-webhook-timestamp");
        if (at.Length is 0 or > 12 || !at.All(char.IsAsciiDigit) || Math.Abs(now.ToUnixTimeSeconds() - long.Parse(at)) > 300)
            return false;
        var id = Header("x-webhook-delivery-id");
        var provider = id != ""; // endpoint of a provider; else address of an account
        var prefix = Encoding.Latin1.GetBytes(provider ? $"{at}\n{id}\n" : $"{at}.");
        var mac = HMACSHA256.HashData(Encoding.UTF8.GetBytes(secret), prefix.Concat(body).ToArray());
        var want = Encoding.Latin1.GetBytes(provider ? Convert.ToBase64String(mac) : Convert.ToHexString(mac).ToLowerInvariant());
        var given = provider
            ? new[] { Header("x-webhook-signature"), Header("x-webhook-signature-next") }
            : Header("x-webhook-signature-v2").Split(',');
        return given.Count(g => CryptographicOperations.FixedTimeEquals(Encoding.Latin1.GetBytes(g), want)) > 0;
    }
}
