// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	cbor "k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"

	"github.com/atoll-dev/atoll/region"
)

// ErrCredentials means that a peer refused the router itself and not the caller: the peer does not accept the
// router's credentials (401), does not let them impersonate the user, or does not let them read the cluster's
// identity. The request had no effect. Renew the credentials, or grant the missing right. ErrCredentials never wraps
// the peer's answer, which could be mistaken for an answer to the caller.
var ErrCredentials = errors.New("the peer refuses the router's own credentials")

// Accepted checks resp, the peer's answer to a request that was made with StreamConfig. It returns nil if the peer
// answered the identity of c; resp.Body is then readable from its start. If the peer refused the router instead,
// Accepted closes resp.Body and returns a *region.Error with ErrCredentials. It reads at most 64 KiB of a 401 or
// 403.
func (c *Client) Accepted(resp *http.Response) error {
	t := c.transport
	err := accepted(t.id, resp)
	if err == nil {
		return nil
	}
	e := &region.Error{Region: t.key, Op: "stream", Err: err}
	if conn, unknown := t.conn(); unknown == nil {
		e.Peer = conn.Peer()
		conn.Refresh()
	}
	return e
}

// accepted returns ErrCredentials, and closes resp.Body, if resp refuses the router's own credentials rather than
// id.
func accepted(id Identity, resp *http.Response) error {
	if id.kind != self && id.kind != impersonated {
		return nil // the credentials are the caller's
	}
	var status metav1.Status
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		// A service behind the API server authenticates callers itself: its 401 is not a Status.
		status = statusIn(resp)
		if isProxied(resp.Request) && status.Reason != metav1.StatusReasonUnauthorized {
			return nil
		}
	case http.StatusForbidden:
		if id.kind == self {
			return nil
		}
		if status = statusIn(resp); !isImpersonation(status) {
			return nil
		}
	default:
		return nil
	}
	_ = resp.Body.Close()
	return fmt.Errorf("%w: %d %s", ErrCredentials, resp.StatusCode, status.Message)
}

// refusedUs returns ErrCredentials if err is a peer's answer to one of the router's own requests, otherwise err.
func refusedUs(err error) error {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return fmt.Errorf("%w: %s", ErrCredentials, err.Error())
	}
	return err
}

// impersonation matches an API server's message that the right to impersonate is missing. A caller's own request
// cannot cause such a message: the message names the verb of the refused request, and the verb of a caller's request
// is an HTTP method or one of Kubernetes' verbs for resources.
var impersonation = regexp.MustCompile(`^User "(?:[^"\\]|\\.)*" cannot impersonate(?:-on)?(?::[a-z:-]+)? (?:resource|path) "`)

// isImpersonation reports whether an API server refused to let the router impersonate a user. The message begins with
// the group, resource and name of the request, which the caller chose: isImpersonation removes this prefix before the
// match.
func isImpersonation(s metav1.Status) bool {
	if s.Reason != metav1.StatusReasonForbidden {
		return false
	}
	own := "forbidden: "
	if d := s.Details; d != nil && d.Kind != "" {
		own = "is forbidden: "
		if d.Name != "" {
			own = strconv.Quote(d.Name) + " " + own
		}
		own = schema.GroupResource{Group: d.Group, Resource: d.Kind}.String() + " " + own
	}
	words, ok := strings.CutPrefix(s.Message, own)
	return ok && impersonation.MatchString(words)
}

// isProxied reports whether the answer to req may come from a pod, service or node behind the API server.
func isProxied(req *http.Request) bool {
	return req == nil || strings.Contains(req.URL.Path+"/", "/proxy/")
}

// maxStatus is the maximum number of bytes that statusIn reads of an answer. An API server's refusal has a few hundred
// bytes.
const maxStatus = 64 << 10

// statusIn decodes the Status in resp, in any encoding of an API server, and leaves resp.Body readable from its
// start. It returns the zero Status if the body is not a Status.
func statusIn(resp *http.Response) metav1.Status {
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxStatus))
	rest := io.Reader(resp.Body)
	if err != nil {
		rest = failing{err}
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(data), rest), resp.Body}

	var status metav1.Status
	var unknown runtime.Unknown
	switch {
	case bytes.HasPrefix(data, []byte("k8s\x00")):
		if unknown.Unmarshal(data[4:]) != nil || status.Unmarshal(unknown.Raw) != nil || unknown.Kind != "Status" {
			return metav1.Status{}
		}
		return status
	case bytes.HasPrefix(data, []byte{0xd9, 0xd9, 0xf7}): // RFC 8949, 3.4.6
		err = cbor.Unmarshal(data, &status)
	default:
		err = json.Unmarshal(data, &status)
	}
	if err != nil || status.Kind != "Status" {
		return metav1.Status{}
	}
	return status
}

// failing is a body whose Read always returns err.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
