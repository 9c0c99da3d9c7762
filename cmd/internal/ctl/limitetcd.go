package ctl

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/headgate/headgate/internal/readfile"
	"github.com/headgate/headgate/pace/etcd"
)

// EtcdFlags has the address, the credentials and the key prefix of etcd.
type EtcdFlags struct {
	Etcd []string // Addresses. https:// before an address means TLS.

	EtcdCA   string // A file with the CA certificates for etcd.
	EtcdCert string // A file with the client certificate.
	EtcdKey  string // A file with the key of the client certificate.

	EtcdUser         string
	EtcdPasswordFile string

	Prefix  string        // The prefix of the keys of the limits.
	Timeout time.Duration // The timeout of each request to etcd.
}

// Validate refuses invalid flags and combinations. It opens no file.
func (f *EtcdFlags) Validate() error {
	_, err := f.target()
	return err
}

const (
	maxEndpoints    = 32
	maxEtcdPrefix   = 256
	maxEtcdPassword = 4096
	maxEtcdFile     = 1 << 20
	// maxEtcdAnswer bounds one answer of etcd, in bytes.
	maxEtcdAnswer = 64 << 20
	// etcdKeepAlive is the interval of keepalive pings on an idle connection. Without pings, a
	// watch of a dead etcd would wait forever.
	etcdKeepAlive = 10 * time.Second
)

// etcdTarget has the addresses of etcd, parsed from the flags.
type etcdTarget struct {
	addresses []string // The form is host:port.
	secure    bool
}

// endpoints returns the addresses as URLs for etcd's client.
func (t *etcdTarget) endpoints() []string {
	scheme := "http://"
	if t.secure {
		scheme = "https://"
	}
	all := make([]string, len(t.addresses))
	for i, address := range t.addresses {
		all[i] = scheme + address
	}
	return all
}

// target parses and checks the flags. It opens no file.
func (f *EtcdFlags) target() (*etcdTarget, error) {
	withFiles := f.EtcdCA != "" || f.EtcdCert != ""
	switch {
	case (f.EtcdCert == "") != (f.EtcdKey == ""):
		return nil, errors.New("--etcd-cert and --etcd-key go together: name both files")
	case f.EtcdUser == "" && f.EtcdPasswordFile != "":
		return nil, errors.New("--etcd-password-file needs a user: name the user with --etcd-user")
	case f.EtcdUser != "" && f.EtcdPasswordFile == "":
		return nil, errors.New("--etcd-user needs a password: name its file with --etcd-password-file")
	case f.Timeout <= 0:
		return nil, fmt.Errorf("--timeout is %s: write how long etcd may take, like 5s", f.Timeout)
	case len(f.Prefix) > maxEtcdPrefix || !strings.HasSuffix(f.Prefix, "/"):
		return nil, fmt.Errorf("--prefix %.40q (%d bytes) is invalid: write a prefix of at most %d bytes that ends with /, like %s",
			f.Prefix, len(f.Prefix), maxEtcdPrefix, etcd.DefaultPrefix)
	case len(f.Etcd) == 0 || len(f.Etcd) > maxEndpoints:
		return nil, fmt.Errorf("--etcd has %d addresses: write 1 to %d addresses", len(f.Etcd), maxEndpoints)
	}
	t := &etcdTarget{secure: withFiles}
	for i, text := range f.Etcd {
		address, scheme, err := parseEndpoint(text)
		secure := scheme == "https" || scheme == "" && withFiles
		switch {
		case err != nil:
			return nil, err
		case scheme == "http" && withFiles:
			return nil, fmt.Errorf("--etcd %s does not use TLS, but --etcd-ca and --etcd-cert need TLS: "+
				"write https://, or leave these flags out", text)
		case i > 0 && secure != t.secure:
			return nil, errors.New("--etcd mixes addresses with TLS and without: write https:// before every address, or before none")
		}
		t.secure = secure
		t.addresses = append(t.addresses, address)
	}
	return t, nil
}

// parseEndpoint parses host:port with an optional http:// or https://.
func parseEndpoint(text string) (address, scheme string, err error) {
	scheme, address, found := strings.Cut(strings.TrimSpace(text), "://")
	if !found {
		scheme, address = "", scheme
	} else {
		address = strings.TrimSuffix(address, "/")
	}
	host, port, err := net.SplitHostPort(address)
	number, notNumber := strconv.ParseUint(port, 10, 16)
	wrong := err != nil || notNumber != nil || number == 0 || host == "" || strings.ContainsAny(host, "/@?# ")
	if wrong || scheme != "" && scheme != "http" && scheme != "https" {
		return "", "", fmt.Errorf("--etcd %.130q is not an address: write host:port, like 127.0.0.1:2379, or https://host:port", text)
	}
	return address, scheme, nil
}

// open connects to etcd. If no address responds, the error lists the attempts. etcd's own
// client would retry forever and only report a timeout.
func (f *EtcdFlags) open(ctx context.Context, to *etcdTarget) (*clientv3.Client, error) {
	secure, err := f.tlsConfig(to)
	if err != nil {
		return nil, ConfigError{fmt.Errorf("ctl: %w", err)}
	}
	password, err := f.password()
	if err != nil {
		return nil, ConfigError{fmt.Errorf("ctl: %w", err)}
	}
	if err := to.reach(ctx, secure, f.Timeout); err != nil {
		return nil, err
	}
	again := grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2, MaxDelay: pulseEvery},
		MinConnectTimeout: f.Timeout,
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: to.endpoints(), TLS: secure, Username: f.EtcdUser, Password: password, Context: ctx,
		DialTimeout: f.Timeout, DialKeepAliveTime: etcdKeepAlive, DialKeepAliveTimeout: f.Timeout, MaxCallRecvMsgSize: maxEtcdAnswer,
		// Errors report every failure. The client's own log would print them a second time.
		Logger: clientv3.NewCtxClient(ctx).GetLogger(),
		// No proxy of the environment is used. A watch must reconnect soon after etcd comes
		// back, but the default backoff of gRPC grows to minutes.
		DialOptions: []grpc.DialOption{grpc.WithNoProxy(), grpc.WithConnectParams(again)},
	})
	if err != nil {
		return nil, f.explain(to, err)
	}
	return client, nil
}

// tlsConfig reads the TLS files. It returns nil when TLS is off.
func (f *EtcdFlags) tlsConfig(to *etcdTarget) (*tls.Config, error) {
	if !to.secure {
		return nil, nil //nolint:nilnil // as etcd's client has it
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.EtcdCA != "" {
		pem, err := readBounded(f.EtcdCA, maxEtcdFile)
		if err != nil {
			return nil, fmt.Errorf("--etcd-ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--etcd-ca: %s has no certificate: write PEM into it", f.EtcdCA)
		}
	}
	if f.EtcdCert != "" {
		cert, err := readBounded(f.EtcdCert, maxEtcdFile)
		if err != nil {
			return nil, fmt.Errorf("--etcd-cert: %w", err)
		}
		key, err := readBounded(f.EtcdKey, maxEtcdFile)
		if err != nil {
			return nil, fmt.Errorf("--etcd-key: %w", err)
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("--etcd-cert and --etcd-key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// password reads the user's password. Its errors never contain text of the file.
func (f *EtcdFlags) password() (string, error) {
	if f.EtcdPasswordFile == "" {
		return "", nil
	}
	text, err := readBounded(f.EtcdPasswordFile, maxEtcdPassword)
	if err != nil {
		return "", fmt.Errorf("--etcd-password-file: %w", err)
	}
	password := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if password == "" || strings.ContainsAny(password, "\r\n") {
		return "", fmt.Errorf("--etcd-password-file: write only the password into %s", f.EtcdPasswordFile)
	}
	return password, nil
}

// readBounded reads a file and fails when the file has more than most bytes.
func readBounded(path string, most int64) ([]byte, error) {
	text, err := readfile.Head(path, most+1)
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s has more than %d bytes", path, most)
	}
	return text, err
}
