package proxy

import (
	"bytes"
	"embed"
	"os"
	"path/filepath"
	"text/template"
)

// configs holds the templates of the configuration files, which take values, and the scripts
// of wrk.
//
//go:embed configs
var configs embed.FS

// settings is what a side does with a request. The zero value only forwards.
type settings struct {
	// Rules is the number of rules that match each request.
	Rules int
	// OtherRules is the number of rules that match no request.
	OtherRules int
	// Keys is the number of keys that nginx and HAProxy have space for. 0 means 8,000 in nginx and 100,000 in HAProxy.
	Keys int
	// Refuse makes the limits so small that they refuse all requests but the first.
	Refuse bool
	// Key is the part of a request that Headgate's rules count by. nginx and HAProxy count
	// by X-Api-Key.
	Key string
	// TLS means HTTPS, with HTTP/1.1 and HTTP/2.
	TLS bool
	// Log writes an access log in JSON.
	Log bool
	// Buffers gives nginx 16 buffers of 16 KiB for each response, instead of the default 8
	// of 4 KiB.
	Buffers bool
	// FairShare and Throttle add these stages to Headgate. They refuse and delay nothing.
	FairShare, Throttle bool
	// GRPC means an upstream of HTTP/2 without TLS.
	GRPC bool
	// Plane is the value of proxy.data_plane. "" leaves the field out.
	Plane string
}

// values is what the templates take.
type values struct {
	settings

	// Folder belongs to the side alone.
	Folder, Certificate   string
	Listen, Health, Admin string
	Upstream              string // host:port
	Config, AccessLog     string
	Root                  bool
}

// render writes the configuration file of a side.
func (v *values) render(name string) error {
	t, err := template.ParseFS(configs, "configs/"+name)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := t.Execute(&text, v); err != nil {
		return err
	}
	return os.WriteFile(v.Config, text.Bytes(), 0o600)
}

// newValues makes the folder of a side, and chooses its addresses.
func (p *Programs) newValues(s settings, upstream string) (*values, error) {
	folder, err := os.MkdirTemp(p.dir, "side-")
	if err != nil {
		return nil, err
	}
	addresses, err := freeAddresses(3)
	if err != nil {
		return nil, err
	}
	if s.Key == "" {
		s.Key = "header:" + keyHeader
	}
	return &values{
		settings: s,
		Folder:   folder, Certificate: p.certificate(),
		Listen: addresses[0], Health: addresses[1], Admin: addresses[2], Upstream: upstream,
		Config: filepath.Join(folder, "config"), AccessLog: filepath.Join(folder, "access.log"),
		Root: os.Geteuid() == 0,
	}, nil
}

// url returns the address that clients connect to.
func (v *values) url() string {
	if v.TLS {
		return "https://" + v.Listen
	}
	return "http://" + v.Listen
}
