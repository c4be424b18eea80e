// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package perturb_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/docpage"
)

// around declares the functions that the code of the page uses and does not show.
const around = `package perturb_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/regiontest/perturb"
)

type action = func(context.Context, perturb.Access) error

func put(name, value string) action   { return nil }
func drop(server, name string) action { return nil }

func exists(ctx context.Context, access perturb.Access, server, name string) bool { return true }

func scenarioFrom(seed uint64) (s perturb.Scenario) { return s }
`

// TestPageCompiles compiles the Go code of docs/perturbation.md together with the tests of this package, which have its
// copier.
func TestPageCompiles(t *testing.T) {
	code, blocks := around, 0
	for _, b := range docpage.Blocks(t, filepath.Join("..", "..", "..", "docs", "perturbation.md")) {
		if b.Language != "go" {
			continue
		}
		blocks++
		if !strings.HasPrefix(b.Text, "func ") {
			b.Text = fmt.Sprintf("func part%d(t *testing.T, s *perturb.Scenario) {\n%s}\n", blocks, b.Text)
		}
		code += "\n" + b.Text
	}
	// The package has a scenario and a TestCopier of its own, and the page leaves out the argument in a plan.
	code = strings.NewReplacer("scenario()", "pageScenario(copier{})", "scenario(c", "pageScenario(c", "TestCopier", "TestPageCopier").Replace(code)
	require.Equal(t, 4, blocks)

	dir := t.TempDir()
	source, overlay := filepath.Join(dir, "page.go"), filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(source, []byte(code), 0o600))
	file, err := filepath.Abs("code_of_page_test.go")
	require.NoError(t, err)
	replaced, err := json.Marshal(map[string]any{"Replace": map[string]string{file: source}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, replaced, 0o600))
	out, err := exec.CommandContext(t.Context(), "go", "vet", "-overlay", overlay, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
}
