// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// maxAnswer bounds the response to a probe, in bytes.
const maxAnswer = 1 << 20

// UID returns the UID of the peer's kube-system namespace. This UID identifies the cluster, and so reveals two names
// for one cluster. UID reads it once per generation of the credentials and caches it; the credentials need the right to
// get that namespace. Errors are *Error: ErrUnavailable; ErrOtherCluster if the UID differs from Peer.UID, or from the
// first UID that the Conn read; or the peer's response, with ErrIdentityUnknown if the response is 403. If Peer.UID is
// set, the Conn sends no other request before it has verified the UID.
func (c *Conn) UID(ctx context.Context) (types.UID, error) {
	g := c.current.Load()
	uid, err := c.identify(ctx, g)
	if next := c.current.Load(); err != nil && next != g {
		uid, err = c.identify(ctx, next) // the credentials were replaced in the meantime
	}
	if err != nil {
		return "", &Error{Peer: c.Peer(), Op: "identify", Err: cause(err)}
	}
	return uid, nil
}

// identify reads the UID of the cluster that g reaches, once, and checks that it is the peer's.
func (c *Conn) identify(ctx context.Context, g *generation) (types.UID, error) {
	if uid := g.uid.Load(); uid != nil {
		return *uid, nil
	}
	uid, err := c.readUID(ctx, g)
	if err != nil {
		return "", err
	}
	c.uid.CompareAndSwap(nil, &uid)
	if known := *c.uid.Load(); known != uid {
		return "", fmt.Errorf("%w: kube-system has UID %s there, and %s here", ErrOtherCluster, uid, known)
	}
	g.uid.Store(&uid)
	return uid, nil
}

// verified returns nil if requests may be sent on g. If Peer.UID was set and g was not verified yet, it first reads the
// UID of the cluster that g reaches.
func (c *Conn) verified(ctx context.Context, g *generation) error {
	if !c.pinned || g.uid.Load() != nil {
		return nil
	}
	// Do not record this read in the Attempt: the Attempt belongs to the request that waits for the read.
	_, err := c.identify(context.WithValue(ctx, attemptKey{}, nil), g)
	if apierrors.IsUnauthorized(err) {
		c.Refresh()
	}
	if err != nil {
		return &Error{Peer: c.Peer(), Op: "identify", Err: cause(err)}
	}
	return nil
}

// readUID reads the UID of the cluster that g reaches.
func (c *Conn) readUID(ctx context.Context, g *generation) (types.UID, error) {
	body, err := fetch(ctx, &generationTransport{c, g}, "/api/v1/namespaces/kube-system")
	if apierrors.IsForbidden(err) {
		return "", fmt.Errorf("%w: %w", ErrIdentityUnknown, cause(err))
	}
	if err != nil {
		return "", fmt.Errorf("get namespace kube-system: %w", cause(err))
	}
	var namespace metav1.PartialObjectMetadata
	if err := json.Unmarshal(body, &namespace); err != nil {
		return "", fmt.Errorf("get namespace kube-system: the answer is not JSON: %w", err)
	}
	if namespace.UID == "" {
		return "", errors.New("get namespace kube-system: the answer has no UID")
	}
	return namespace.UID, nil
}

// fetch gets path from a peer through rt. A response other than 200 is an APIStatus error.
func fetch(ctx context.Context, rt http.RoundTripper, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://peer.invalid"+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json, */*")
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, &unavailable{err}
	}
	if resp.StatusCode == http.StatusOK {
		return body, nil
	}
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil && status.Kind == "Status" && status.Message != "" {
		return nil, &apierrors.StatusError{ErrStatus: status}
	}
	return nil, apierrors.NewGenericServerResponse(resp.StatusCode, "get", schema.GroupResource{}, path, "", 0, true)
}
