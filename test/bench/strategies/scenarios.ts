/**
 * Conversations with a support agent about insurance, banking and a shop, like those of the study that the suite
 * repeats. Each has instructions for the agent and questions that build on each other, so that the context grows with
 * every turn.
 */
export interface Scenario {
  name: string;
  system: string;
  questions: string[];
}

export const SCENARIOS: readonly Scenario[] = [
  {
    name: 'insurance',
    system:
      'You are the claims assistant of Harbour Mutual, an insurer of homes and cars. Be brief and polite, never promise a payment, and ask for the policy number before you speak of a policy.',
    questions: [
      'Hello, a tree has fallen on my garage during the storm last night. What should I do first?',
      'My policy number is HM-204417. Does it cover damage by storms to a garage that stands apart from the house?',
      'The roof is broken and my car is under it. Do I need one claim or two?',
      'The repair shop wants to start tomorrow. May they begin before your expert has seen the damage?',
      'Which photographs and which bills should I send, and how long have I got for it?',
      'Please sum up what we have agreed on and what I have to do, in order.',
    ],
  },
  {
    name: 'banking',
    system:
      'You are the support assistant of Northgate Bank. You can explain products, fees and forms. You cannot see accounts or move money, and you never ask for a password or a PIN.',
    questions: [
      'I lost my debit card this morning. How do I have it blocked?',
      'There are two payments on my account that I did not make, of 42 and of 180 euros. What happens with them?',
      'How long does the bank take to look into that, and do I get the money back meanwhile?',
      'I am leaving for a journey on Friday. Can a new card reach me at another address?',
      'Until it comes, how can I pay in shops and draw cash?',
      'Write a short message to the bank that reports the two payments, with everything that you know of them.',
    ],
  },
  {
    name: 'shop',
    system:
      'You are the assistant of a shop for bicycles and their parts. You know orders, returns and sizes. Answer in a few sentences, and say so when you do not know something.',
    questions: [
      'My order 88120 should have come on Tuesday, and it has not. Where is it?',
      'It was a wheel of 28 inches and two tyres. Can I change the tyres to a width of 40 mm while it is on its way?',
      'If the wheel turns out not to fit my frame, how do I send it back, and who pays for that?',
      'The frame takes axles of 12 by 142 mm. Is the wheel that I have ordered right for it?',
      'Then please tell me which wheel of yours is, and what it would cost me to change.',
      'List everything in this order as it stands now, with what is still to be settled.',
    ],
  },
];
