// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/url"

	"k8s.io/client-go/rest"
)

// Credentials are a kubeconfig that was checked, or a configuration that the program vouches for. The zero value is
// refused everywhere. String, JSON and log output show host and fingerprint, never a secret.
type Credentials struct {
	config      *rest.Config
	fingerprint string
	err         error // why there are none, from a Source that knows the peer but could not read its credentials
}

// ParseKubeconfig checks data as hostile input, before any of it is acted on. Errors are *FieldError and name the field
// ("users[0].user.exec") and what would be accepted. It reads no file, runs nothing, dials nothing.
func ParseKubeconfig(data []byte, trust Trust) (Credentials, error) {
	return Credentials{}, errors.New("not yet")
}

// FromConfig takes over a configuration that the program made itself, such as rest.InClusterConfig's. It is not for
// bytes from outside.
func FromConfig(c *rest.Config) (Credentials, error) {
	return Credentials{config: rest.CopyConfig(c)}, nil
}

// Trust allows what ParseKubeconfig refuses. The zero value allows nothing beyond https server, CA data, token and
// client certificate data. File paths and impersonation cannot be allowed.
type Trust struct {
	Exec     []string             // absolute paths of credential plugins that may run
	Proxy    func(*url.URL) error // nil refuses proxy-url
	Server   func(*url.URL) error // nil accepts any https address
	Insecure bool                 // insecure-skip-tls-verify, for demonstrations
}

// FieldError says which field of a kubeconfig or of a list of peers is refused, why, and what would be accepted.
type FieldError struct {
	Field  string // "users[0].user.exec"; empty if it is about the whole
	Reason string
	Accept string
	Err    error // the cause, may be nil
}

// Error is one line and holds no secret.
func (e *FieldError) Error() string { return e.Field + ": " + e.Reason + "; " + e.Accept }

// Unwrap returns the cause, if there is one.
func (e *FieldError) Unwrap() error { return e.Err }

// String shows host and fingerprint.
func (c Credentials) String() string { return c.fingerprint }

// GoString is String, so that %#v shows no more.
func (c Credentials) GoString() string { return c.String() }

// MarshalJSON shows what String shows.
func (c Credentials) MarshalJSON() ([]byte, error) { return json.Marshal(c.String()) }

// LogValue shows what String shows, for log/slog.
func (c Credentials) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalLog shows what String shows, for logr.
func (c Credentials) MarshalLog() any { return c.String() }

func (c Credentials) equal(o Credentials) bool { return c.fingerprint == o.fingerprint }
