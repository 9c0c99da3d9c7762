package etcd

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"

	"github.com/headgate/headgate/internal/config/source"
)

// handshakes are the TLS handshakes with the members. etcd's client checks a certificate against the host of the
// address, and ignores ServerName.
type handshakes struct {
	credentials.TransportCredentials

	name string // The name in each member's certificate; "" means the host of the address.
	// demanded says that a member has asked for a client certificate, and has answered no call since. In TLS 1.3, the
	// client's handshake ends before the member checks the certificate, and the only error may be a closed connection.
	demanded *atomic.Bool
}

func newHandshakes(c *tls.Config) *handshakes {
	h := &handshakes{name: c.ServerName, demanded: &atomic.Bool{}}
	c = c.Clone()
	former := c.GetClientCertificate
	c.GetClientCertificate = func(asked *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		h.demanded.Store(true)
		if former != nil {
			return former(asked)
		}
		for i := range c.Certificates {
			if asked.SupportsCertificate(&c.Certificates[i]) == nil {
				return &c.Certificates[i], nil
			}
		}
		return &tls.Certificate{}, nil // It sends none.
	}
	h.TransportCredentials = credentials.NewTLS(c)
	return h
}

// ClientHandshake checks the certificate against the configured name.
func (h *handshakes) ClientHandshake(ctx context.Context, host string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if h.name != "" {
		host = h.name
	}
	return h.TransportCredentials.ClientHandshake(ctx, host, conn)
}

// Clone keeps the name.
func (h *handshakes) Clone() credentials.TransportCredentials {
	return &handshakes{h.TransportCredentials.Clone(), h.name, h.demanded}
}

// answered notes that a call has succeeded, so that the member accepts the client certificate.
func (h *handshakes) answered(
	ctx context.Context, method string, req, reply any, on *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	err := call(ctx, method, req, reply, on, opts...)
	if err == nil {
		h.demanded.Store(false)
	}
	return err
}

// advice adds what the handshakes have shown.
func (c *connection) advice(err error) string {
	if c.secure != nil && source.TLSAdvice(err, "source.etcd.tls") == "" && c.secure.demanded.Load() && codeOf(err) == codes.Unavailable {
		return ": the server asks for a client certificate and may have refused it: set source.etcd.tls.cert and source.etcd.tls.key " +
			"to a client certificate that the server accepts"
	}
	return advice(err)
}
