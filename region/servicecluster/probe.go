// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package servicecluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"

	"k8s.io/apimachinery/pkg/version"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/v1alpha1"
)

// Probe reaches a cluster by the kubeconfig and returns its version, which may be zero if the cluster does not tell.
// ErrKubeconfig means that the kubeconfig is not accepted, any other error that the cluster is not reachable.
type Probe func(ctx context.Context, kubeconfig []byte) (v1alpha1.KubernetesVersion, error)

// ErrKubeconfig means that a kubeconfig is not accepted: it is missing, malformed, or has a field that is not
// allowed. Correct the Secret of the ServiceCluster; a retry does not help.
var ErrKubeconfig = errors.New("the kubeconfig is not accepted")

// answerLimit bounds the body of a cluster's answer, in bytes.
const answerLimit = 64 << 10

// NewProbe returns the Probe that reads /version, over a new connection to an address that the Addresses allow. See the
// package comment for its limits. It does no I/O.
func NewProbe(allowed Addresses) Probe {
	return func(ctx context.Context, kubeconfig []byte) (v1alpha1.KubernetesVersion, error) {
		credentials, err := region.ParseKubeconfig(kubeconfig, region.Trust{})
		if err != nil {
			return v1alpha1.KubernetesVersion{}, fmt.Errorf("%w: %w", ErrKubeconfig, err)
		}
		client, server, err := credentials.UntrustedClient(allowed.dial)
		if err != nil {
			return v1alpha1.KubernetesVersion{}, fmt.Errorf("%w: %w", ErrKubeconfig, err)
		}
		v, err := readVersion(ctx, client, server.JoinPath("version").String())
		if errors.Is(err, ErrAddress) {
			err = fmt.Errorf("%w: %w", ErrKubeconfig, err)
		}
		return v, err
	}
}

func readVersion(ctx context.Context, client *http.Client, address string) (v1alpha1.KubernetesVersion, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return v1alpha1.KubernetesVersion{}, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return v1alpha1.KubernetesVersion{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusForbidden:
		return v1alpha1.KubernetesVersion{}, nil // it knows the user, who may not read the version
	default:
		return v1alpha1.KubernetesVersion{}, &statusError{resp.StatusCode}
	}
	var info version.Info
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit+1))
	if err != nil {
		return v1alpha1.KubernetesVersion{}, err
	}
	if len(body) > answerLimit || json.Unmarshal(body, &info) != nil {
		return v1alpha1.KubernetesVersion{}, errNoVersion
	}
	v := v1alpha1.KubernetesVersion{Major: info.Major, Minor: info.Minor, GitVersion: info.GitVersion, Platform: info.Platform}
	for _, field := range []string{v.Major, v.Minor, v.GitVersion, v.Platform} {
		if !versionForm.MatchString(field) {
			return v1alpha1.KubernetesVersion{}, errNoVersion
		}
	}
	return v, nil
}

// versionForm is the form of each part of a version. Terminals show these parts.
var versionForm = regexp.MustCompile(`^[0-9A-Za-z.+~_/-]{0,64}$`)

var errNoVersion = errors.New("the server does not answer with a Kubernetes version")

// statusError is an answer with an HTTP status that a reachable cluster does not have.
type statusError struct{ code int }

func (e *statusError) Error() string {
	return fmt.Sprintf("the server answers %d %s", e.code, http.StatusText(e.code))
}

// explain returns why a probe failed, in words for the message of a condition. It contains no address and nothing that
// the cluster sent.
func explain(err error) string {
	if answered, ok := errors.AsType[*statusError](err); ok {
		if answered.code == http.StatusUnauthorized {
			return string(region.CauseUnauthorized) + ": " + region.CauseUnauthorized.Remedy()
		}
		return answered.Error()
	}
	if refused, ok := errors.AsType[*addressError](err); ok {
		return refused.Error()
	}
	switch cause := region.CauseOf(err); {
	case errors.Is(err, ErrKubeconfig):
		return err.Error()
	case errors.Is(err, errNoVersion):
		return err.Error()
	case errors.Is(err, context.DeadlineExceeded) && cause == region.CauseUnknown:
		return string(region.CauseTimeout) + ": " + region.CauseTimeout.Remedy()
	case cause != region.CauseUnknown:
		return string(cause) + ": " + cause.Remedy()
	}
	return "the server is not reachable"
}
