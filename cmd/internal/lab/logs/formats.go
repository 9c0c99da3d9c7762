package logs

import (
	"strings"
	"time"
)

// format is one form of the lines of a kind.
type format struct {
	kind  kindID
	parse text
	// marks are texts that each line of the form has. They find the form of a log, and parse alone decides each line.
	marks []string
	// fields adds the fields of JSON, or the attributes of a text.
	fields func(s *fieldSet, parts []string)
	// headers says that lines have all headers, so that a header without a value was not sent.
	headers bool
}

const sec = time.Second

// formatsTable has the forms, those with more marks first.
var formatsTable = []format{
	{kind: kindHeadgate, parse: parseJSON, marks: []string{`{"time":"`, `"uri":`, `"duration":`, `"status":`}, fields: headgateFields},
	{kind: kindCaddy, parse: parseJSON, marks: []string{`"ts":`, `"request":{`, `"logger":`}, fields: caddyFields, headers: true},
	{kind: kindTraefik, parse: parseJSON, marks: []string{`"RequestMethod"`, `"StartUTC"`}, fields: traefikFields},
	{kind: kindTraefik, parse: parseTraefik, marks: []string{`" "`, `] "`, `ms`}, fields: attributeFields},
	{kind: kindEnvoy, parse: parseJSON, marks: []string{`"start_time"`}, fields: envoyFields},
	{kind: kindEnvoy, parse: parseEnvoy, marks: []string{`] "`, `" "`}, fields: attributeFields},
	{kind: kindHAProxy, parse: parseHAProxy, marks: []string{`] `, `"`}, fields: attributeFields},
	{kind: kindHAProxy, parse: parseJSON, marks: []string{`"tr"`, `"Ta"`}, fields: attributeFields},
	{kind: kindSquid, parse: parseSquid, marks: []string{`/`}, fields: attributeFields},
	{kind: kindNginx, parse: parseCombined, marks: []string{` msec=`}, fields: attributeFields},
	{kind: kindNginx, parse: parseJSON, marks: []string{`"request_time"`}, fields: nginxFields},
	{kind: kindNginx, parse: parseCombined, marks: []string{` request_time=`}, fields: attributeFields},
	{kind: kindVarnish, parse: parseCombined, marks: []string{` req=`}, fields: attributeFields},
	{kind: kindVarnish, parse: parseCombined, marks: []string{` start=`}, fields: attributeFields},
	{kind: kindApache, parse: parseCombined, marks: []string{` begin=`}, fields: attributeFields},
	{kind: kindLighttpd, parse: parseCombined, marks: []string{` begin=`}, fields: attributeFields},
	{kind: kindCombined, parse: parseCombined, marks: []string{`] "`, `" "`}, fields: attributeFields},
	{kind: kindCommon, parse: parseCombined, marks: []string{`] "`}, fields: attributeFields},
	{kind: kindJSON, parse: parseJSON, marks: []string{`{`}},
}

// attributeFields are the names of attributes after a line of text. Each server's names are those of its own settings.
func attributeFields(s *fieldSet, parts []string) {
	for _, f := range [...]field{
		// nginx
		{name: "msec", slot: slotEnd, unit: sec},
		{name: "request_time", slot: slotDuration, unit: sec},
		{name: "request_length", slot: slotLength},
		{name: "uri", slot: slotURI},
		// Apache and lighttpd, then Varnish
		{name: "begin", slot: slotStart, unit: time.Microsecond},
		{name: "D", slot: slotDuration, unit: time.Microsecond},
		{name: "start", slot: slotStart, unit: sec},
		{name: "req", slot: slotReady, unit: sec},
		// HAProxy, in JSON
		{name: "tr", slot: slotStart},
		{name: "TR", slot: slotHead, unit: time.Millisecond},
		{name: "Ta", slot: slotDuration, unit: time.Millisecond},
		{name: "ci", slot: slotClient},
		{name: "ST", slot: slotStatus},
		{name: "HM", slot: slotMethod},
		{name: "HU", slot: slotPath},
		{name: "host", slot: slotHost},
		{name: "ip", slot: slotClient},
		{name: "user_ip", slot: slotUserIP},
		{name: "region", slot: slotRegion},
		{name: "cost", slot: slotCost},
	} {
		s.all = append(s.all, f)
	}
	s.addParts(parts, "")
}

// addParts adds the parts under their own names in an object, "" for the line itself.
func (s *fieldSet) addParts(parts []string, object string) {
	for i, p := range parts {
		if object == "" {
			s.all = append(s.all, field{name: p, slot: slotPart, part: i})
			continue
		}
		f := field{name: p, slot: slotPart, part: i}
		if strings.HasSuffix(object, "_hash") {
			f.slot = slotHash
		}
		inner := s.inner(object)
		inner.all = append(inner.all, f)
	}
	if object == "" {
		s.all = append(s.all, field{name: partCookies, slot: slotCookies})
	}
}

// inner returns the fields of an object, which it makes if needed.
func (s *fieldSet) inner(object string) *fieldSet {
	for i := range s.all {
		if s.all[i].name == object {
			if s.all[i].sub == nil {
				s.all[i].sub = &fieldSet{fold: s.fold}
			}
			return s.all[i].sub
		}
	}
	inner := &fieldSet{fold: s.fold}
	s.all = append(s.all, field{name: object, sub: inner})
	return inner
}

func headgateFields(s *fieldSet, parts []string) {
	for _, f := range [...]field{
		{name: "time", slot: slotReady},
		{name: "remote_ip", slot: slotClient},
		{name: "method", slot: slotMethod},
		{name: "host", slot: slotHost},
		{name: "uri", slot: slotPath},
		{name: "status", slot: slotStatus},
		{name: "duration", slot: slotDuration, unit: sec},
		{name: "verdict", slot: slotVerdict},
		{name: "reason", slot: slotReason},
		{name: "rule", slot: slotRule},
		{name: "decided_at", slot: slotDecided, unit: sec},
		{name: "user_ip", slot: slotUserIP},
		{name: "region", slot: slotRegion},
		{name: "cost", slot: slotCost},
	} {
		s.all = append(s.all, f)
	}
	s.addParts(parts, "identity")
	s.addParts(parts, "identity_hash")
	for i, p := range parts {
		switch p {
		case partAgent:
			s.all = append(s.all, field{name: "user_agent", slot: slotPart, part: i})
		case partReferer:
			s.all = append(s.all, field{name: "referer", slot: slotPart, part: i})
		}
	}
}

func caddyFields(s *fieldSet, parts []string) {
	s.fold = true // A header of HTTP/2 can be in lower case.
	s.all = append(s.all, field{name: "ts", slot: slotEnd}, field{name: "duration", slot: slotDuration, unit: sec},
		field{name: "status", slot: slotStatus}, field{name: "msg", slot: slotMessage, want: "handled request"})
	request := s.inner("request")
	request.all = append(request.all, field{name: "remote_ip", slot: slotClient}, field{name: "remote_addr", slot: slotClient},
		field{name: "method", slot: slotMethod}, field{name: "host", slot: slotHost}, field{name: "uri", slot: slotPath})
	headers := request.inner("headers")
	for i, p := range parts {
		if name, ok := strings.CutPrefix(p, "header:"); ok {
			headers.all = append(headers.all, field{name: name, slot: slotPart, part: i})
		}
	}
	headers.all = append(headers.all, field{name: "Cookie", slot: slotCookies})
	s.addParts(parts, "")
}

func traefikFields(s *fieldSet, parts []string) {
	s.fold = true
	for _, f := range [...]field{
		{name: "StartUTC", slot: slotReady},
		{name: "Duration", slot: slotDuration, unit: time.Nanosecond},
		{name: "RequestMethod", slot: slotMethod},
		{name: "RequestHost", slot: slotHost},
		{name: "RequestPath", slot: slotPath},
		{name: "DownstreamStatus", slot: slotStatus},
		{name: "ClientHost", slot: slotClient},
	} {
		s.all = append(s.all, f)
	}
	for i, p := range parts {
		if name, ok := strings.CutPrefix(p, "header:"); ok {
			s.all = append(s.all, field{name: "request_" + name, slot: slotPart, part: i})
		}
	}
	s.all = append(s.all, field{name: "request_Cookie", slot: slotCookies})
}

func envoyFields(s *fieldSet, parts []string) {
	for _, f := range [...]field{
		{name: "start_time", slot: slotStart},
		{name: "duration", slot: slotDuration, unit: time.Millisecond},
		{name: "response_code", slot: slotStatus},
		{name: "method", slot: slotMethod},
		{name: "path", slot: slotPath},
		{name: "x_envoy_original_path", slot: slotPath},
		{name: "authority", slot: slotHost},
		{name: "downstream_remote_address", slot: slotClient},
		{name: "downstream_direct_remote_address", slot: slotClient},
	} {
		s.all = append(s.all, f)
	}
	for i, p := range parts {
		switch p {
		case partForwarded:
			s.all = append(s.all, field{name: "x_forwarded_for", slot: slotPart, part: i})
		case partAgent:
			s.all = append(s.all, field{name: "user_agent", slot: slotPart, part: i})
		}
	}
	s.addParts(parts, "")
}

// nginxFields are fields with the names of the variables of nginx.
func nginxFields(s *fieldSet, parts []string) {
	attributeFields(s, parts)
	for _, f := range [...]field{
		{name: "time_iso8601", slot: slotTime},
		{name: "time_local", slot: slotTime},
		{name: "remote_addr", slot: slotClient},
		{name: "request_method", slot: slotMethod},
		{name: "request_uri", slot: slotPath},
		{name: "request", slot: slotRequest},
		{name: "http_host", slot: slotHost},
		{name: "status", slot: slotStatus},
	} {
		s.all = append(s.all, f)
	}
	for i, p := range parts {
		if name, ok := strings.CutPrefix(p, "header:"); ok {
			s.all = append(s.all, field{name: "http_" + strings.ToLower(strings.ReplaceAll(name, "-", "_")), slot: slotPart, part: i})
		}
		if name, ok := strings.CutPrefix(p, "cookie:"); ok {
			s.all = append(s.all, field{name: "cookie_" + name, slot: slotPart, part: i})
		}
	}
}

// The parts that text formats have at a place of their own.
const (
	partReferer   = "header:Referer"
	partAgent     = "header:User-Agent"
	partForwarded = "header:X-Forwarded-For"
	partID        = "header:X-Request-Id"
	partCookies   = "header:Cookie" // of which parts are cookies
)
