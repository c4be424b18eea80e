// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region"
)

const (
	readTimeout = 10 * time.Second // per peer, so that a peer that hangs does not delay the results of the others
	pageSize    = 500
)

// read calls fn for each peer concurrently and waits for all. The results include the errors, without the layers of clients
// around their causes.
func read[T any](ctx context.Context, d region.Directory, op string, fn func(context.Context, *region.Conn) (T, error)) region.Results[T] {
	results, _ := region.Each(ctx, d, op, region.BestEffort(), func(ctx context.Context, c *region.Conn) (T, error) {
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		value, err := fn(ctx, c)
		return value, region.Diagnose(err)
	})
	return results
}

// list reads all objects of a resource in one peer.
func list(ctx context.Context, c *region.Conn, resource schema.GroupVersionResource, namespace string) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	opts := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := c.Dynamic().Resource(resource).Namespace(namespace).List(ctx, opts)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if opts.Continue = page.GetContinue(); opts.Continue == "" {
			return all, nil
		}
	}
}

// unread returns nil if err is nil. Otherwise err names the peers that could not be read, and
// unread adds an exit code and a remedy. The code is exitInput if the user can correct the cause in
// each of these peers, such as a missing right or type. Otherwise it is exitDoubt, since the result
// is incomplete.
func (s *session) unread(err error) error {
	if err == nil {
		return nil
	}
	doubt := &problem{code: exitDoubt, remedy: "the output is complete except for these peers", err: err}
	if _, ok := errors.AsType[*region.PartialError](err); !ok {
		return doubt
	}
	var remedies []string
	for _, member := range members(err) {
		remedy, ok := s.input(member)
		if !ok {
			return doubt
		}
		if remedy != "" && !slices.Contains(remedies, remedy) {
			remedies = append(remedies, remedy)
		}
	}
	return &problem{code: exitInput, remedy: strings.Join(remedies, "; "), err: err}
}
