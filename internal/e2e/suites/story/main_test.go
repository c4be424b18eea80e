// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package story_test

import (
	"os"
	"testing"
	"time"

	"k8s.io/client-go/transport"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

func TestMain(m *testing.M) {
	transport.CertCallbackRefreshDuration = time.Second // users' new certificates are used at once
	os.Exit(planetest.Run(m))
}
