// What a new script begins with.

import type { ScriptLanguage } from '../api/wire'

const TEMPLATES: Record<ScriptLanguage, string> = {
  shell: '#!/bin/bash\nset -euo pipefail\n\necho "hello from shard $2 of $3, with parameter: $1"\n',
  python: 'import sys\n\nprint(f"hello from shard {sys.argv[2]} of {sys.argv[3]}, with parameter: {sys.argv[1]}")\n',
  python2: 'import sys\n\nprint "hello, with parameter:", sys.argv[1]\n',
  node: 'const [param, index, total] = process.argv.slice(2)\n\nconsole.log(`hello from shard ${index} of ${total}, with parameter: ${param}`)\n',
  php: '<?php\n\necho "hello from shard $argv[2] of $argv[3], with parameter: $argv[1]\\n";\n',
  powershell: 'param($Param, $Index, $Total)\n\nWrite-Output "hello from shard $Index of $Total, with parameter: $Param"\n',
  groovy:
    'import com.xxl.job.core.context.XxlJobHelper\nimport com.xxl.job.core.handler.IJobHandler\n\nclass Hello extends IJobHandler {\n  void execute() {\n    XxlJobHelper.log("hello")\n  }\n}\n',
}

export const templateOf = (language: ScriptLanguage) => TEMPLATES[language]
