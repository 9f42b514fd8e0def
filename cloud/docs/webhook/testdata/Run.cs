using System;
using System.Collections.Generic;
using System.Text;

static class Run
{
    static string Text(string b) => Encoding.Latin1.GetString(Convert.FromBase64String(b));

    static void Main()
    {
        for (var line = Console.ReadLine(); line != null; line = Console.ReadLine())
        {
            var parts = line.Split('\t');
            var headers = new Dictionary<string, string>();
            for (var i = 3; i < parts.Length; i++)
            {
                var at = parts[i].IndexOf('=');
                headers[parts[i][..at]] = Text(parts[i][(at + 1)..]);
            }
            Console.WriteLine(Webhook.Verify(headers, Convert.FromBase64String(parts[2]), Text(parts[0]), DateTimeOffset.FromUnixTimeSeconds(long.Parse(parts[1]))) ? 1 : 0);
        }
    }
}
