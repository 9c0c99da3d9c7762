// Package jwt verifies bearer tokens (JSON Web Tokens, RFC 7519) by the public keys
// of who issues them: it is the Tokens of a rule.Identity, for rules with keys
// jwt:CLAIM.
//
// [Open] reads the keys from a file: a set of keys in JSON (JWKS, RFC 7517), as
// issuers publish it, or public keys and certificates in PEM.
//
// A token is good when all of this holds; for everything else Verify says no, and
// never why, since only its sender would learn from it:
//
//   - It is a signed token in compact form, of 8 KiB and 100 claims at most, each
//     named once, and encoded in the one way that there is: what differs in a byte
//     differs in its signature.
//   - It is signed with RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384,
//     ES512 or EdDSA by a key of the file that is made for this algorithm. There is
//     no "none", and there are no shared secrets (HS256): a public key cannot be
//     mistaken for one.
//   - If it names its key (kid), the key of that name has signed it. Keys without a
//     name, as in PEM, stand in for names that the file does not have. At most four keys are
//     tried for one token: for one without kid those without a name first, then in the order of the file.
//   - It asks for no extension (crit).
//   - It has an expiry (exp), which is ahead; what it says of its beginning (nbf, iat)
//     is past. Clocks may differ by Leeway.
//   - Its issuer (iss) and audience (aud) are those of the Config, if it has them.
//
// Dates of certificates do not count: the operator who puts one in the file
// vouches for its key.
//
// Good tokens are remembered until they expire, by a digest of all their bytes, so
// that a client's next request costs a hash instead of a signature. Refused ones are
// remembered for ten seconds, 4,096 of them, in a place of their own: no number of invented tokens drives
// out a good one.
//
// Start with verifier.go, then claims.go and keys.go; cache.go stands alone.
// github.com/go-jose/go-jose decodes the keys of a JWKS. github.com/golang-jwt/jwt
// verifies signatures and compares times.
package jwt
