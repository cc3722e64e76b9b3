/** Requests that wait for syntax trees. */
import { expect, test } from 'vitest';
import { Parsing } from '../../../engine/server/runningRequest.ts';
import { SourceDocument } from '../../../engine/text/syntax/sourceDocument.ts';
import { Syntax } from '../../../engine/text/syntax/syntax.ts';
import { Grammars } from '../../../engine/text/syntax/syntaxTrees.ts';

test('a document that changes while it is parsed keeps its whole path', async () => {
  const parsing = new Parsing(new Syntax(new Grammars()), (_, error) => {
    throw error;
  });
  const document = new SourceDocument('a', 'C:\\project\\src\\deep\\a.ts', 'const a = 1;\n');
  const [copy] = await new Promise<readonly SourceDocument[]>((resolve) => {
    parsing.whenParsed({ requestId: 'r', priority: 'completion' }, [document], () => {}, resolve);
    document.text += 'let b;\n';
  });
  expect(copy).not.toBe(document);
  expect([copy?.path, copy?.fullPath]).toEqual([document.path, 'C:/project/src/deep/a.ts']);
  expect(copy?.withInserted(0, 'let b;\n').fullPath).toBe('C:/project/src/deep/a.ts');
});
