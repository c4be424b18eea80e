// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/regiontest/conformance"
)

// newConformanceServer returns a server that rejects the requests of the users without rights that
// the cases impersonate, as RBAC does. It does not reject discovery and reviews of a user's own
// rights.
func newConformanceServer(t *testing.T) *regiontest.Server {
	t.Helper()
	s := regiontest.NewServer(regiontest.Options{Authorize: func(r regiontest.Request) error {
		if strings.HasPrefix(r.User.Name, "nobody") && r.Resource != "" && r.Group != "authorization.k8s.io" {
			return errors.New("")
		}
		return nil
	}})
	t.Cleanup(s.Close)
	return s
}

func TestConformance(t *testing.T) {
	s := newConformanceServer(t)
	conformance.Run(t, s.Config(), conformance.Memory)
	conformance.RunCompactions(t, s.Config(), conformance.Memory, func(context.Context) error {
		s.Compact()
		return nil
	})
}

func TestConformanceOverTLS(t *testing.T) {
	s := newConformanceServer(t)
	kubeconfig, err := s.Listen(t.Context())
	require.NoError(t, err)
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	require.NoError(t, err)
	conformance.Run(t, config, conformance.Memory)
	conformance.RunCompactions(t, config, conformance.Memory, func(context.Context) error {
		s.Compact()
		return nil
	})
}
