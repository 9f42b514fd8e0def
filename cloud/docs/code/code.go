// Package code writes a call of the interface in six programming languages, as programs
// that run as they stand with the standard library of the language and the token in the
// environment variable POSTERN_TOKEN. Functions are pure and safe for concurrent use.
package code

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Call is a request of the interface.
type Call struct {
	Method, URL string
	Headers     [][2]string // in their order, without the token
	Body        string      // JSON, or empty
	Token       bool        // the call needs one
}

// Language is a programming language of calls.
type Language struct {
	ID, Name string
	File     string // name that a program has, where its language wants one
	write    func(Call) string
}

// Languages are all of them, in the order of pages.
func Languages() []Language {
	return []Language{
		{"curl", "curl", "call.sh", writeCurl},
		{"python", "Python", "call.py", writePython},
		{"javascript", "JavaScript", "call.mjs", writeJavaScript},
		{"go", "Go", "call.go", writeGo},
		{"java", "Java", "Call.java", writeJava},
		{"php", "PHP", "call.php", writePHP},
	}
}

// Write is a call as a program of the language.
func (l Language) Write(c Call) string { return l.write(c) }

// headers are those of a call with the type of its body.
func (c Call) headers() [][2]string {
	out := append([][2]string{}, c.Headers...)
	if c.Body != "" {
		out = append(out, [2]string{"Content-Type", "application/json"})
	}
	return out
}

// literal is a text between double quotes as JSON has it, which Python, JavaScript, Go
// and Java read too.
func literal(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return `""` // no text fails
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func inShell(s string) string { return `'` + strings.ReplaceAll(s, `'`, `'\''`) + `'` }

func inPHP(s string) string {
	return `'` + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + `'`
}

// indent puts spaces before every line but the first.
func indent(s string, n int) string { return strings.ReplaceAll(s, "\n", "\n"+strings.Repeat(" ", n)) }

func writeCurl(c Call) string {
	parts := []string{"curl -X " + c.Method + " " + inShell(c.URL)}
	if c.Token {
		parts = append(parts, `-H "Authorization: Bearer $POSTERN_TOKEN"`)
	}
	for _, h := range c.headers() {
		parts = append(parts, "-H "+inShell(h[0]+": "+h[1]))
	}
	if c.Body != "" {
		parts = append(parts, "--data-raw "+inShell(c.Body))
	}
	return strings.Join(parts, " \\\n  ") + "\n"
}

func writePython(c Call) string {
	var b strings.Builder
	if c.Token {
		b.WriteString("import os\n")
	}
	fmt.Fprintf(&b, "import urllib.request\n\nrequest = urllib.request.Request(\n    %s,\n    method=%s,\n    headers={\n", literal(c.URL), literal(c.Method))
	if c.Token {
		b.WriteString("        \"Authorization\": \"Bearer \" + os.environ[\"POSTERN_TOKEN\"],\n")
	}
	for _, h := range c.headers() {
		fmt.Fprintf(&b, "        %s: %s,\n", literal(h[0]), literal(h[1]))
	}
	b.WriteString("    },\n")
	if c.Body != "" { // JSON never has three quotes in a row
		fmt.Fprintf(&b, "    data=r\"\"\"%s\"\"\".encode(),\n", c.Body)
	}
	b.WriteString(")\nwith urllib.request.urlopen(request) as answer:\n    print(answer.status, answer.read().decode())\n")
	return b.String()
}

func writeJavaScript(c Call) string {
	var b strings.Builder
	fmt.Fprintf(&b, "const answer = await fetch(%s, {\n  method: %s,\n  headers: {\n", literal(c.URL), literal(c.Method))
	if c.Token {
		b.WriteString("    Authorization: `Bearer ${process.env.POSTERN_TOKEN}`,\n")
	}
	for _, h := range c.headers() {
		fmt.Fprintf(&b, "    %s: %s,\n", literal(h[0]), literal(h[1]))
	}
	b.WriteString("  },\n")
	if c.Body != "" { // JSON has both signs as escapes, too
		fmt.Fprintf(&b, "  body: String.raw`%s`,\n", strings.NewReplacer("`", `\u0060`, "${", `\u0024{`).Replace(c.Body))
	}
	b.WriteString("});\nconsole.log(answer.status, await answer.text());\n")
	return b.String()
}

func writeGo(c Call) string {
	var b strings.Builder
	b.WriteString("package main\n\nimport (\n\t\"fmt\"\n\t\"io\"\n\t\"log\"\n\t\"net/http\"\n")
	if c.Token {
		b.WriteString("\t\"os\"\n")
	}
	body := "nil"
	if c.Body != "" {
		b.WriteString("\t\"strings\"\n")
		body = "strings.NewReader(`" + strings.ReplaceAll(c.Body, "`", `\u0060`) + "`)"
	}
	fmt.Fprintf(&b, ")\n\nfunc main() {\n\trequest, err := http.NewRequest(%s, %s, %s)\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n", literal(c.Method), literal(c.URL), body)
	if c.Token {
		b.WriteString("\trequest.Header.Set(\"Authorization\", \"Bearer \"+os.Getenv(\"POSTERN_TOKEN\"))\n")
	}
	for _, h := range c.headers() {
		fmt.Fprintf(&b, "\trequest.Header.Set(%s, %s)\n", literal(h[0]), literal(h[1]))
	}
	b.WriteString("\tanswer, err := http.DefaultClient.Do(request)\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n\tdefer answer.Body.Close()\n\ttext, err := io.ReadAll(answer.Body)\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n\tfmt.Println(answer.StatusCode, string(text))\n}\n")
	return b.String()
}

func writeJava(c Call) string {
	var b strings.Builder
	body := "BodyPublishers.noBody()"
	if c.Body != "" {
		body = "BodyPublishers.ofString(\"\"\"\n                " + indent(strings.ReplaceAll(c.Body, `\`, `\\`), 16) + "\"\"\")"
	}
	fmt.Fprintf(&b, "import java.net.URI;\nimport java.net.http.HttpClient;\nimport java.net.http.HttpRequest;\nimport java.net.http.HttpRequest.BodyPublishers;\nimport java.net.http.HttpResponse.BodyHandlers;\n\nclass Call {\n    public static void main(String[] args) throws Exception {\n        var request = HttpRequest.newBuilder(URI.create(%s))\n            .method(%s, %s)\n", literal(c.URL), literal(c.Method), body)
	if c.Token {
		b.WriteString("            .header(\"Authorization\", \"Bearer \" + System.getenv(\"POSTERN_TOKEN\"))\n")
	}
	for _, h := range c.headers() {
		fmt.Fprintf(&b, "            .header(%s, %s)\n", literal(h[0]), literal(h[1]))
	}
	b.WriteString("            .build();\n        var answer = HttpClient.newHttpClient().send(request, BodyHandlers.ofString());\n        System.out.println(answer.statusCode() + \" \" + answer.body());\n    }\n}\n")
	return b.String()
}

func writePHP(c Call) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<?php\n$answer = file_get_contents(%s, false, stream_context_create(['http' => [\n    'method' => %s,\n    'header' => [\n", inPHP(c.URL), inPHP(c.Method))
	if c.Token {
		b.WriteString("        'Authorization: Bearer ' . getenv('POSTERN_TOKEN'),\n")
	}
	for _, h := range c.headers() {
		fmt.Fprintf(&b, "        %s,\n", inPHP(h[0]+": "+h[1]))
	}
	b.WriteString("    ],\n")
	if c.Body != "" { // a line of JSON never begins with the mark
		fmt.Fprintf(&b, "    'content' => <<<'BODY'\n        %s\n        BODY,\n", indent(c.Body, 8))
	}
	b.WriteString("    'ignore_errors' => true,\n]]));\necho $http_response_header[0], PHP_EOL, $answer, PHP_EOL;\n")
	return b.String()
}
