package main

import (
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/postern-io/postern/cloud/peer"
	"github.com/postern-io/postern/cloud/server"
)

// proxySettings say whose word about callers counts.
type proxySettings struct {
	Trusted []string `yaml:"trusted" json:"trusted"` // networks
	Header  string   `yaml:"header" json:"header"`   // x-forwarded-for or forwarded
	// Protocol names the listeners that read the PROXY protocol.
	Protocol []string `yaml:"protocol" json:"protocol"`
}

// proxyListeners are the listeners that can read the PROXY protocol, by setting.
var proxyListeners = []string{"listen", "tls.listen", "mqtt.listen", "mqtt.tls_listen", "mqtt.ws_listen", "mqtt.wss_listen"}

func (s *settings) checkProxies(bad func(string, ...any)) {
	var networks []netip.Prefix
	for _, text := range s.Proxies.Trusted {
		n, err := netip.ParsePrefix(text)
		if a, addrErr := netip.ParseAddr(text); err != nil && addrErr == nil {
			n, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err != nil || n.Bits() == 0 {
			bad("proxies.trusted %q: use an address or a network such as 10.1.0.0/16, not all addresses", text)
			continue
		}
		networks = append(networks, n.Masked())
	}
	var err error
	if s.proxies, err = peer.New(networks, s.Proxies.Header); err != nil {
		bad("proxies.%w", err)
	}
	for _, name := range s.Proxies.Protocol {
		if !slices.Contains(proxyListeners, name) {
			bad("proxies.protocol %q: use some of %s", name, strings.Join(proxyListeners, ", "))
		}
	}
	if len(s.Proxies.Protocol) > 0 && len(networks) == 0 {
		bad("proxies.protocol: name the proxies in proxies.trusted")
	}
}

func (s *settings) checkOrigins(bad func(string, ...any)) {
	for i, o := range s.Origins {
		u, err := url.Parse(o)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
			bad("origins %q: use scheme and host, such as https://shop.example", o)
			continue
		}
		s.Origins[i] = strings.ToLower(u.Scheme + "://" + u.Host)
	}
}

// maxLimit is the highest limit that can be set, in calls a minute.
const maxLimit = 1_000_000

func (s *settings) checkLimits(bad func(string, ...any)) {
	known := server.RateNames()
	for _, name := range slices.Sorted(maps.Keys(s.Limits)) {
		if !slices.Contains(known, name) {
			bad("limits.%s: use some of %s", name, strings.Join(known, ", "))
		}
		if n := s.Limits[name]; n < 0 || n > maxLimit {
			bad("limits.%s %d: use 1 to %d calls a minute, or 0 for no limit", name, n, maxLimit)
		}
	}
	for name, n := range map[string]int{"http.address": s.Connections.HTTP.Address, "http.total": s.Connections.HTTP.Total, "mqtt.address": s.Connections.MQTT.Address, "mqtt.total": s.Connections.MQTT.Total} {
		if n < -1 || n > maxLimit {
			bad("connections.%s %d: use 1 to %d, 0 for the usual figure, or -1 for no limit", name, n, maxLimit)
		}
	}
}
