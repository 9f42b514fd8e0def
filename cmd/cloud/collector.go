package main

import (
	"net/url"
	"os"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// collectorHeaders is the variable that holds headers for the trace collector, as
// OpenTelemetry's "OTLP Exporter Configuration" says: name=value pairs with commas
// between them, values percent-encoded.
const collectorHeaders = "OTEL_EXPORTER_OTLP_HEADERS"

// checkCollector checks the trace collector's settings and reads its headers. Errors never
// quote these.
func (s *settings) checkCollector(bad func(string, ...any)) {
	if s.OTLPEndpoint != "" && !isURL(s.OTLPEndpoint, "http", "https") {
		bad("otlp_endpoint: use the collector's address, such as http://collector:4318; secrets go into %s", collectorHeaders)
	}
	if s.OTLPShare < 0 || s.OTLPShare > 1 {
		bad("otlp_share %v: use 0 to 1, such as 0.05 for one call in twenty", s.OTLPShare)
	}
	s.otlpHeaders = map[string]string{}
	for pair := range strings.SplitSeq(os.Getenv(collectorHeaders), ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			bad("%s: use name=value pairs with commas between them, values percent-encoded", collectorHeaders)
			return
		}
		s.otlpHeaders[name] = value
	}
}
