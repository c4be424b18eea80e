// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// Credentials are a kubeconfig that was checked, or a configuration that the program trusts. Everything that connects
// rejects the zero value. String, JSON and log output show host and fingerprint, never a secret.
type Credentials struct {
	config      *rest.Config // never modified
	fingerprint string
	err         error // why a Source that lists the peer has no credentials for it
	withheld    bool  // a Ring must stop using the credentials that it has for the peer
}

// Withheld returns credentials for a peer that a Source lists and that must not be connected to: any connection with
// them fails with err. A Ring that is connected to the peer ends that connection. A Source that merely cannot read new
// credentials returns the last good ones instead, or Unread.
func Withheld(err error) Credentials {
	if err == nil {
		err = errors.New("the credentials are withheld")
	}
	return Credentials{err: err, withheld: true}
}

// Unread returns credentials for a peer whose credentials a Source cannot read, and has not read before. A Ring that is
// connected to the peer stays connected, a new connection fails with err, and a Kept uses those that it has kept.
func Unread(err error) Credentials {
	if err == nil {
		err = errors.New("the credentials were not read yet")
	}
	return Credentials{err: err}
}

// FromConfig copies a configuration that the program made itself, such as rest.InClusterConfig's. It is not for
// untrusted input: it checks only that Host is an address. If Transport is set, it must not add credentials of its own,
// since it also carries the requests of callers; WrapTransport applies only to the peer's own requests. Two results for
// configurations with functions (WrapTransport, Dial, Proxy) never compare as equal: call FromConfig once per
// configuration.
func FromConfig(c *rest.Config) (Credentials, error) {
	if c == nil {
		return Credentials{}, errors.New("credentials: the configuration is nil")
	}
	if c.Host == "" {
		return Credentials{}, &FieldError{Field: "Host", Reason: "is empty", Accept: "the address of an API server"}
	}
	if _, _, err := rest.DefaultServerUrlFor(c); err != nil {
		return Credentials{}, &FieldError{Field: "Host", Reason: "is not an address", Accept: "https://HOST[:PORT][/PATH]", Err: err}
	}
	config := copyConfig(c)
	var own string
	if c.WrapTransport != nil || c.Dial != nil || c.Proxy != nil {
		own = fmt.Sprintf("%p", config) // values captured by a function cannot be compared
	}
	return Credentials{config: config, fingerprint: fingerprint(config, own)}, nil
}

// copyConfig makes a deep copy, including the parts that rest.CopyConfig shares.
func copyConfig(c *rest.Config) *rest.Config {
	own := *c
	own.ExecProvider = c.ExecProvider.DeepCopy() // rest.CopyConfig writes to the ExecProvider of its argument
	config := rest.CopyConfig(&own)
	for _, data := range []*[]byte{&config.CAData, &config.CertData, &config.KeyData} {
		*data = slices.Clone(*data)
	}
	config.NextProtos = slices.Clone(c.NextProtos)
	config.Impersonate.Groups = slices.Clone(c.Impersonate.Groups)
	config.Impersonate.Extra = maps.Clone(c.Impersonate.Extra)
	return config
}

// fingerprint identifies the server and the identity of c. For a function it includes only the address of the code,
// which closures of one function share; the values in more distinguish closures.
func fingerprint(c *rest.Config, more ...string) string {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%q\n", more)
	for _, v := range []any{
		c.Host, c.APIPath, c.BearerToken, c.BearerTokenFile, c.Username, c.Password, c.Impersonate,
		c.Insecure, c.ServerName, c.CAFile, c.CAData, c.CertFile, c.CertData, c.KeyFile, c.KeyData,
		c.AuthProvider, c.DisableCompression, c.ContentType, c.AcceptContentTypes,
		address(c.Transport), address(c.WrapTransport), address(c.Dial), address(c.Proxy),
	} {
		_, _ = fmt.Fprintf(h, "%#v\n", v)
	}
	if c.ExecProvider != nil {
		_, _ = fmt.Fprintf(h, "%q %q %#v\n", c.ExecProvider.Command, c.ExecProvider.Args, c.ExecProvider.Env)
		if info, ok := c.ExecProvider.Config.(*runtime.Unknown); ok {
			_, _ = fmt.Fprintf(h, "%q\n", info.Raw)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func address(v any) uintptr {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Chan, reflect.Map:
		return r.Pointer()
	default:
		return 0
	}
}

// check returns why c cannot be used, or nil.
func (c Credentials) check() error {
	switch {
	case c.err != nil:
		return c.err
	case c.config == nil:
		return errors.New("has no credentials; make them with ParseKubeconfig or FromConfig")
	default:
		return nil
	}
}

func (c Credentials) equal(o Credentials) bool {
	return c.fingerprint == o.fingerprint && c.withheld == o.withheld && fmt.Sprint(c.err) == fmt.Sprint(o.err)
}

// String shows host and fingerprint.
func (c Credentials) String() string {
	if c.config == nil {
		return "none"
	}
	host := c.config.Host
	if u, err := url.Parse(host); err == nil && u.Host != "" {
		host = u.Host
	}
	return host + " (" + c.fingerprint + ")"
}

// GoString is String, so that %#v shows no secret.
func (c Credentials) GoString() string { return c.String() }

// MarshalJSON encodes String.
func (c Credentials) MarshalJSON() ([]byte, error) { return json.Marshal(c.String()) }

// LogValue is String, for log/slog.
func (c Credentials) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalLog is String, for logr.
func (c Credentials) MarshalLog() any { return c.String() }
