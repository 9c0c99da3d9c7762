package jwt_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	gojwt "github.com/golang-jwt/jwt/v5"

	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/rule/jwt"
)

// Rules with keys jwt:CLAIM need an Identity with Tokens.
func Example() {
	// The issuer has a private key and publishes the public key.
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		fmt.Println(err)
		return
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		fmt.Println(err)
		return
	}
	file := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	token, err := gojwt.NewWithClaims(gojwt.SigningMethodEdDSA, gojwt.MapClaims{
		"iss": "https://id.example", "aud": []string{"api"}, "sub": "ann", "exp": time.Now().Add(time.Hour).Unix(),
	}).SignedString(private)
	if err != nil {
		fmt.Println(err)
		return
	}

	verifier, err := jwt.New(file, jwt.Config{Issuer: "https://id.example", Audience: "api", Leeway: 30 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	identity := rule.Identity{Tokens: verifier}

	for _, sent := range []string{token, "changed" + token, "invented"} {
		claims, ok := identity.Tokens.Verify(sent)
		if !ok {
			fmt.Println("no good token")
			continue
		}
		subject, _ := claims.Lookup("sub")
		fmt.Println("good, of", subject)
	}
	// Output:
	// good, of ann
	// no good token
	// no good token
}
