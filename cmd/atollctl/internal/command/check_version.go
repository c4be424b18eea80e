// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
)

// oldestKubernetes is the oldest version of API servers that Atoll supports, as in the README. Older
// ones do not know optionalOldSelf, so they accept changes of claims that must be rejected.
const oldestKubernetes = "1.30"

// maxVersion bounds the response to a request for the version, in bytes.
const maxVersion = 1 << 20

// banner is an API server's response to a request for its version.
type banner struct {
	version      string // such as v1.36.0; empty if refused is set
	refused      error  // a response without a version, such as 403
	date         string // the header Date
	began, ended time.Time
	certificate  *x509.Certificate // the server's; nil without TLS
}

// observeBanner reads the version of a peer's API server. One response serves several checks.
func observeBanner(ctx context.Context, c *region.Conn, now func() time.Time) (banner, error) {
	config := c.Config()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return banner{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/version", http.NoBody)
	if err != nil {
		return banner{}, err
	}
	b := banner{began: now()}
	resp, err := client.Do(req)
	if err != nil {
		return banner{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	b.ended, b.date = now(), resp.Header.Get("Date")
	if resp.TLS != nil && len(resp.TLS.PeerCertificates) > 0 {
		b.certificate = resp.TLS.PeerCertificates[0]
	}
	if resp.StatusCode != http.StatusOK {
		b.refused = apierrors.NewGenericServerResponse(resp.StatusCode, "get", schema.GroupResource{}, "/version", "", 0, true)
		return b, nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxVersion))
	if err != nil {
		return banner{}, err
	}
	var info struct{ GitVersion string }
	if err := json.Unmarshal(body, &info); err != nil {
		b.refused = fmt.Errorf("read /version: %w", err)
	}
	b.version = info.GitVersion
	return b, nil
}

func judgeVersion(b banner, err error) finding {
	if err == nil {
		err = b.refused
	}
	if err != nil {
		return unknown(checkVersion, err)
	}
	present, err := version.ParseGeneric(b.version)
	switch {
	case err != nil:
		return unknown(checkVersion, fmt.Errorf("version %q: %w", b.version, err))
	case !present.AtLeast(version.MustParseGeneric(oldestKubernetes)):
		return failed(checkVersion, "upgrade the API server to "+oldestKubernetes+" or later", "API server %s is older than %s: it does not enforce the rules that guard claims", b.version, oldestKubernetes)
	}
	return passed(checkVersion, "API server %s, %s or later is supported", b.version, oldestKubernetes)
}
