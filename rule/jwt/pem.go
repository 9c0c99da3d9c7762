package jwt

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// pemBegin is the start of each PEM block.
const pemBegin = "-----BEGIN "

// parsePEM parses a list of public keys and certificates. parsePEM ignores text between them.
func parsePEM(data []byte) ([]key, error) {
	var keys []key
	begun := bytes.Count(data, []byte(pemBegin))
	for n := 1; ; n++ {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		public, err := publicOf(block)
		if err != nil {
			return nil, fmt.Errorf("block %d (%.40q) %w", n, block.Type, err)
		}
		keys = append(keys, key{public: public})
	}
	if len(keys) < begun { // the decoder skips invalid blocks
		return nil, fmt.Errorf("the file has %d blocks, and %d can be read: "+
			"write the other blocks completely, with their BEGIN and END lines", begun, len(keys))
	}
	return keys, nil
}

// publicOf parses one block.
func publicOf(block *pem.Block) (public crypto.PublicKey, err error) {
	const fix = `use one that begins with "-----BEGIN PUBLIC KEY-----"`
	switch {
	case strings.Contains(block.Type, "PRIVATE"):
		return nil, errors.New("is a private key, which only its owner should have: " +
			"write its public key, from openssl pkey -in KEY -pubout")
	case block.Type == "PUBLIC KEY":
		public, err = x509.ParsePKIXPublicKey(block.Bytes)
	case block.Type == "RSA PUBLIC KEY":
		public, err = x509.ParsePKCS1PublicKey(block.Bytes)
	case block.Type == "CERTIFICATE":
		var certificate *x509.Certificate
		if certificate, err = x509.ParseCertificate(block.Bytes); err == nil {
			public = certificate.PublicKey
		}
	default:
		return nil, errors.New("is neither a public key nor a certificate: " + fix)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot be read (%w): %s", err, fix)
	}
	if len(algorithmsOf(public)) == 0 {
		return nil, errors.New("has an unsupported kind: use RSA, EC (P-256, P-384, P-521) or Ed25519")
	}
	return public, checkStrength(public)
}
